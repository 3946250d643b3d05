"""Variants of ExpGen: Tables 4, 5, 10, 11 and 12."""

from dataclasses import replace

from expgen.evaluation.scores import SPLITS, Split
from expgen.paper import numbers
from expgen.report.lines import settings_line
from expgen.report.methods import Method
from expgen.report.score_sections import BESIDE, beside_paper, comparison
from expgen.report.score_table import ScoreTable
from expgen.report.section import NOTES, Section
from expgen.report.tables import Table, number_cell


def ablation_section(table: ScoreTable) -> Section:
    """Table 10."""
    variants = {
        "ExpGen": Method("expgen"),
        "Ensemble + random": Method("expgen", (("fallback", "random"),)),
        "LEEP": Method("leep"),
        "PPO + GRU": Method("ppo-gru"),
        "PPO": Method("ppo"),
    }
    caption, paper = "ExpGen without its explorer, and single policies.", numbers.ablation()
    result = comparison("table-10", caption, ("game", "method", "split"), (
        ((game, name, split), table.cell(method, game, split), paper.get((name, split)) if game == "maze" else None)
        for game in table.games([variants["Ensemble + random"]])
        for name, method in variants.items() for split in SPLITS
    ))  # fmt: skip
    return Section("table-10", NOTES["scores"], [result])


def ensemble_size_section(table: ScoreTable) -> Section:
    """Table 5: the quorum shrinks with the ensemble, in proportion. Parts of ensembles, and the wholes beside them."""
    sized = _varied(table, "ensemble_size", "min_agree")
    sized = dict(sorted(sized.items(), key=lambda pair: -len(pair[0].settings)))  # later ones count: by size alone
    quoted = {int(m): cell for (m,), cell in numbers.cells("ensemble_size", "ensemble_size").items()}
    result = Table("table-5", "ExpGen's test score by ensemble size.", ("game", "members", *BESIDE))
    figures = []
    for game in table.games(sized):
        cells = table.by_members(Method("expgen"), game, "test")
        cells |= {size: c for m, size in sized.items() if (c := table.cell(m, game, "test")) is not None}
        paper = quoted if game == "maze" else {}
        for size in sorted(cells):
            result.add(game, number_cell(size, 0), *beside_paper(cells[size], paper.get(size)))
        if cells:
            points = {float(size): cell.estimate for size, cell in cells.items()}
            means = {float(size): cell.mean for size, cell in paper.items()}
            figure = settings_line(points, means, "members of the ensemble", f"test return, {game}")
            figures.append((f"Test return on {game} against ensemble size", figure))
    return Section("table-5", NOTES["scores"], [result], figures)


def quorum_section(table: ScoreTable) -> Section:
    """Table 4: which quorum does best, beside the one in the paper."""
    asked = _varied(table, "min_agree")
    chosen = {row["game"]: int(row["k_paper"]) for row in numbers.rows("consensus_k")}
    result = Table("table-4", "ExpGen's test score by quorum k; best in bold.",
                   ("game", "k", "mean", "95 % interval", "runs", "steps", "the paper's k"))  # fmt: skip
    for game in table.games(asked):
        cells = {quorum: c for m, quorum in asked.items() if (c := table.cell(m, game, "test")) is not None}
        best = max((cell.estimate.value for cell in cells.values()), default=None)
        for quorum, cell in sorted(cells.items()):
            mean, *rest = beside_paper(cell, None)[:4]
            mean = replace(mean, bold=mean.sort == best)
            result.add(game, number_cell(quorum, 0), mean, *rest, "this" if chosen.get(game) == quorum else "")
    return Section("table-4", NOTES["quorums"], [result])


def _varied(table: ScoreTable, setting: str, *others: str) -> dict[Method, int]:
    """ExpGen with a value of `setting`, and that value; it may differ from its defaults in `others` too."""
    variants = [m for m in table.methods() if m.algorithm == "expgen" and m.has_only(setting, *others)]
    return {method: value for method in variants if (value := method.count(setting))}


def norm_section(table: ScoreTable, name: str, split: Split) -> Section:
    """Tables 11 and 12."""
    variants = {
        "ExpGen-L0": Method("expgen", (("distance", "l0"),)),
        "ExpGen-L2": Method("expgen"),
        "PPO": Method("ppo"),
    }
    caption = f"ExpGen's {split} score by the norm of its explorer's reward."
    paper = numbers.cells("norm_l0_l2", "method", "game", "split")
    result = comparison(name, caption, ("game", "method"), (
        ((game, label), table.cell(method, game, split), paper.get((label, game, split)))
        for game in table.games([variants["ExpGen-L0"]]) for label, method in variants.items()
    ))  # fmt: skip
    return Section(name, NOTES["scores"], [result])
