"""How well exploring carries over: Figures 4, 10 and 11, Table 7."""

import statistics

from expgen.evaluation.normalize import generalization_gap
from expgen.evaluation.scores import SPLITS, Split
from expgen.paper import numbers
from expgen.report.bars import grouped_bars
from expgen.report.lines import over_levels
from expgen.report.methods import RETURN, Method
from expgen.report.score_sections import beside_paper, mean_cell
from expgen.report.score_table import ScoreTable
from expgen.report.section import NOTES, Section
from expgen.report.statistics import Estimate
from expgen.report.tables import Table, TableCell, interval_cell, number_cell, percent_cell

INTRINSIC, ORACLE, SUCCESS = "intrinsic_return", "oracle_share", "oracle_success"  # columns of exploration.csv
PLAIN_LEVELS = 200  # training levels of a run that says nothing of them


_EXPLORERS = {"": Method("maxent"), ", no memory": Method("maxent", (("memory", "none"),))}
LEVEL_ROWS = {
    "figure-4": [("intrinsic return", INTRINSIC, {"": Method("maxent")}), ("return", RETURN, {"": Method("ppo")})],
    "figure-11": [
        ("share of the oracle's", ORACLE, _EXPLORERS),
        ("all of the oracle's", SUCCESS, _EXPLORERS),
        ("return", RETURN, {"": Method("ppo"), ", GRU": Method("ppo-gru")}),
    ],
}  # by figure: what a row of panels shows, its measure, and the methods by what tells their lines apart


def _spread(table: ScoreTable, method: Method, game: str, split: Split, measure: str) -> Estimate | None:
    """Mean ± standard deviation over runs, as these figures show it."""
    values = [entry.row.mean_return for entry in table.final(method, game, split, measure)]
    if not values:
        return None
    mean, std = statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0
    return Estimate(mean, mean - std, mean + std)


def levels_section(table: ScoreTable, name: str) -> Section:
    """Figures 4 and 11: train and test scores and gaps against the number of training levels."""
    panels: dict[tuple[str, str], dict[str, dict[float, Estimate]]] = {}
    columns = ("what", "game", "method", "levels", "train", "test", "gap", "paper's gap")
    gaps = Table(name, "Train and test score and gap by number of training levels.", columns)
    for ylabel, measure, methods in LEVEL_ROWS[name]:
        for prefix, plain in methods.items():
            variants = [m for m in table.methods(measure) if _is_variant(m, plain)]
            for game in table.games([m for m in variants if m.setting("levels")], measure):
                lines = panels.setdefault((ylabel, game), {})
                for method in sorted(variants, key=_levels):
                    found = {s: e for s in SPLITS if (e := _spread(table, method, game, s, measure)) is not None}
                    for split, estimate in found.items():
                        lines.setdefault(f"{split}{prefix}", {})[_levels(method)] = estimate
                    if gap := table.gap(method, game, measure):
                        paper = numbers.gaps().get((plain.algorithm, game)) if _levels(method) == PLAIN_LEVELS else None
                        means = [number_cell(found[split].value, 2, table.final(method, game, split, measure))
                                 for split in SPLITS]  # fmt: skip
                        shares = (percent_cell(gap.value), percent_cell(paper))
                        gaps.add(ylabel, game, plain.label, number_cell(_levels(method), 0), *means, *shares)
    figures = [
        (f"{what} on {game}, train and test, against the number of training levels", over_levels(game, what, lines))
        for (what, game), lines in panels.items()
    ]
    return Section(name, NOTES["gaps"], [gaps], figures)


def _is_variant(method: Method, plain: Method) -> bool:
    """Whether `method` is `plain` on any number of training levels."""
    if not _levels(method):
        return False  # they are no number
    rest = tuple(pair for pair in method.settings if pair[0] != "levels")
    return method.algorithm == plain.algorithm and rest == plain.settings


def _levels(method: Method) -> int:
    return method.count("levels") if "levels" in dict(method.settings) else PLAIN_LEVELS


def gap_section(table: ScoreTable) -> Section | None:
    """Figure 10."""
    who = ((Method("ppo"), RETURN), (Method("maxent"), INTRINSIC))
    bars: dict[str, dict[Method, Estimate]] = {}
    result = Table("figure-10", "Generalisation gaps by game.", ("game", "method", "gap", "runs", "paper's text"))
    for game in table.games([method for method, _ in who]):
        for method, measure in who:
            if (gap := table.gap(method, game, measure)) is not None:
                bars.setdefault(game, {})[method] = gap
                entries = table.final(method, game, "test", measure)
                paper = percent_cell(numbers.gaps().get((method.algorithm, game)))
                runs = number_cell(len(entries), 0)
                result.add(game, method.label, percent_cell(gap.value, 1, entries), runs, paper)
    if not bars:
        return None
    paper_bars = {(game, Method(who)): gap for (who, game), gap in numbers.gaps().items() if game in bars}
    figures = grouped_bars(bars, paper_bars, "generalisation gap", as_percent=True)
    words = "Bars of generalisation gaps by game"
    return Section("figure-10", NOTES["gaps"], [result], [(words, figure) for figure in figures])


def neighbor_section(table: ScoreTable) -> Section | None:
    """Table 7."""
    caption = "Neighbour rank k_NN of r_I: the explorer's intrinsic return and gap, ExpGen's test score."
    result = Table("table-7", caption,
                   ("game", "k_NN", "maxEnt train", "maxEnt test", "gap", "paper's gap", "ExpGen test", "interval",
                    "paper's ExpGen test"))  # fmt: skip
    for game in table.games():
        for rank in range(1, 11):
            explorer, agent = (_with_rank(name, rank) for name in ("maxent", "expgen"))
            gap = table.gap(explorer, game, INTRINSIC)
            score = table.cell(agent, game, "test")
            if gap is None and (score is None or rank == 2):
                continue
            quoted = numbers.neighbor_ranks()[rank] if game == "maze" else None
            stated = generalization_gap(quoted["maxent_train"].mean, quoted["maxent_test"].mean) if quoted else None
            result.add(
                game, number_cell(rank, 0), *(mean_cell(table.cell(explorer, game, s, INTRINSIC), 1) for s in SPLITS),
                percent_cell(gap and gap.value), percent_cell(stated),
                *beside_paper(score, None)[:2] if score else ("–", "–"),
                TableCell(str(quoted["expgen_test"])) if quoted else "–",
            )  # fmt: skip
    if len({row[1].text for row in result.rows}) < 2:
        return None
    return Section("table-7", NOTES["neighbors"], [result])


def _with_rank(algorithm: str, rank: int) -> Method:
    """The rank is a setting where it is not the default."""
    return Method(algorithm, () if rank == 2 else (("neighbor_rank", str(rank)),))


def exploration_table(table: ScoreTable) -> Section:
    """What every explorer finds, whatever its settings."""
    columns = ("game", "explorer", "split", "intrinsic return", "interval", "oracle's share", "all of it")
    result = Table("exploration", "Intrinsic return, and the share of what an oracle finds.", columns)
    for method in table.methods(INTRINSIC):
        for game in table.games([method], INTRINSIC):
            for split in SPLITS:
                found, *cells = (table.cell(method, game, split, measure) for measure in (INTRINSIC, ORACLE, SUCCESS))
                if found is not None:
                    shares = [percent_cell(c.estimate.value, 0, c.entries) if c else "–" for c in cells]
                    what = mean_cell(found), interval_cell(*found.estimate[1:])
                    result.add(game, method.label, split, *what, *shares)
    return Section("exploration", NOTES["exploration"], [result], heading="What explorers find")
