"""Variants of ExpGen: Tables 4, 5, 10, 11 and 12."""

from dataclasses import replace

from expgen.evaluation.scores import SPLITS, Split
from expgen.paper import numbers
from expgen.report.lines import settings_line
from expgen.report.methods import Method
from expgen.report.score_sections import COMPARISON_COLUMNS, comparison_cells, comparison_table
from expgen.report.score_table import ScoreTable
from expgen.report.section import NOTES, Section
from expgen.report.tables import Table, number_cell


def ablation_section(table: ScoreTable) -> Section:
    """Return Table 10."""
    variants = {
        "ExpGen": Method("expgen"),
        "Ensemble + random": Method("expgen", (("fallback", "random"),)),
        "LEEP": Method("leep"),
        "PPO + GRU": Method("ppo-gru"),
        "PPO": Method("ppo"),
    }
    caption, paper = "ExpGen without its explorer, and single policies.", numbers.ablation()
    result = comparison_table("table-10", caption, ("game", "method", "split"), (
        ((game, name, split), table.cell(method, game, split), paper.get((name, split)) if game == "maze" else None)
        for game in table.games([variants["Ensemble + random"]])
        for name, method in variants.items() for split in SPLITS
    ))  # fmt: skip
    return Section("table-10", NOTES["scores"], [result])


def ensemble_size_section(table: ScoreTable) -> Section:
    """Return Table 5: the test score by ensemble size, of parts of ensembles and of complete ones."""
    sized = _varied(table, "ensemble_size", "min_agree")
    by_priority = sorted(sized, key=lambda method: -len(method.settings))  # methods that set the size only come last
    quoted = {int(m): cell for (m,), cell in numbers.cells("ensemble_size", "ensemble_size").items()}
    result = Table("table-5", "ExpGen's test score by ensemble size.", ("game", "members", *COMPARISON_COLUMNS))
    figures = []
    for game in table.games(sized):
        cells = table.by_members(Method("expgen"), game, "test")
        cells |= {sized[m]: c for m in by_priority if (c := table.cell(m, game, "test")) is not None}
        paper = quoted if game == "maze" else {}
        for size in sorted(cells):
            result.add(game, number_cell(size, 0), *comparison_cells(cells[size], paper.get(size)))
        if cells:
            points = {float(size): cell.estimate for size, cell in cells.items()}
            means = {float(size): cell.mean for size, cell in paper.items()}
            figure = settings_line(points, means, "members of the ensemble", f"test return, {game}")
            figures.append((f"Test return on {game} against ensemble size", figure))
    return Section("table-5", NOTES["scores"], [result], figures)


def quorum_section(table: ScoreTable) -> Section:
    """Return Table 4: the test score by quorum, with the paper's choice marked."""
    varied = _varied(table, "min_agree")
    chosen = {row["game"]: int(row["k_paper"]) for row in numbers.rows("consensus_k")}
    result = Table("table-4", "ExpGen's test score by quorum k; best in bold.",
                   ("game", "k", "mean", "95 % interval", "runs", "steps", "the paper's k"))  # fmt: skip
    for game in table.games(varied):
        cells = {quorum: c for m, quorum in varied.items() if (c := table.cell(m, game, "test")) is not None}
        best = max((cell.estimate.value for cell in cells.values()), default=None)
        for quorum, cell in sorted(cells.items()):
            mean, *rest = comparison_cells(cell, None)[:4]
            mean = replace(mean, bold=mean.sort == best)
            result.add(game, number_cell(quorum, 0), mean, *rest, "this" if chosen.get(game) == quorum else "")
    return Section("table-4", NOTES["quorums"], [result])


def _varied(table: ScoreTable, setting: str, *others: str) -> dict[Method, int]:
    """Return ExpGen's variants that set `setting`, with its value; of the other settings only `others` may be set."""
    variants = [m for m in table.methods() if m.algorithm == "expgen" and {*dict(m.settings)} <= {setting, *others}]
    return {method: value for method in variants if (value := method.count(setting))}


def norm_section(table: ScoreTable, name: str, split: Split) -> Section:
    """Return Table 11 or 12."""
    variants = {
        "ExpGen-L0": Method("expgen", (("distance", "l0"),)),
        "ExpGen-L2": Method("expgen"),
        "PPO": Method("ppo"),
    }
    caption = f"ExpGen's {split} score by the norm of its explorer's reward."
    paper = numbers.cells("norm_l0_l2", "method", "game", "split")
    result = comparison_table(name, caption, ("game", "method"), (
        ((game, label), table.cell(method, game, split), paper.get((label, game, split)))
        for game in table.games([variants["ExpGen-L0"]]) for label, method in variants.items()
    ))  # fmt: skip
    return Section(name, NOTES["scores"], [result])
