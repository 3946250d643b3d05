"""Generalisation of exploration: Figures 4, 10 and 11, Table 7."""

import itertools
import statistics
from collections.abc import Iterable

from expgen.evaluation.normalize import generalization_gap
from expgen.evaluation.scores import SPLITS, Split
from expgen.paper import numbers
from expgen.report.bars import grouped_bars
from expgen.report.lines import over_levels
from expgen.report.methods import RETURN, Method
from expgen.report.score_sections import comparison_cells, mean_cell
from expgen.report.score_table import ScoreTable
from expgen.report.section import NOTES, Section
from expgen.report.statistics import Estimate
from expgen.report.tables import Table, TableCell, interval_cell, number_cell, percent_cell

INTRINSIC, ORACLE, SUCCESS = "intrinsic_return", "oracle_share", "oracle_success"  # columns of exploration.csv
DEFAULT_LEVELS = 200  # training levels of a row without a `levels` setting
_EXPLORERS = {"": Method("maxent"), ", no memory": Method("maxent", (("memory", "none"),))}
LEVEL_ROWS = {
    "figure-4": [("intrinsic return", INTRINSIC, {"": Method("maxent")}), ("return", RETURN, {"": Method("ppo")})],
    "figure-11": [
        ("share of the oracle's novelty", ORACLE, _EXPLORERS),
        ("episodes with all of it", SUCCESS, _EXPLORERS),
        ("return", RETURN, {"": Method("ppo"), ", GRU": Method("ppo-gru")}),
    ],
}  # by figure: label of a row of panels, its measure, and its methods by the suffix of their line labels


def _spread(table: ScoreTable, method: Method, game: str, split: Split, measure: str) -> Estimate | None:
    """Return the mean; `low` and `high` are one standard deviation over runs away, as in the paper's figures."""
    values = [entry.row.mean_return for entry in table.final_entries(method, game, split, measure)]
    if not values:
        return None
    mean, std = statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0
    return Estimate(mean, mean - std, mean + std)


def levels_section(table: ScoreTable, name: str) -> Section:
    """Return Figure 4 or 11: train and test scores and gaps against the number of training levels."""
    panels: dict[tuple[str, str], dict[str, dict[float, Estimate]]] = {}
    columns = ("measure", "game", "method", "levels", "train", "test", "gap", "paper's gap")
    gaps = Table(name, "Train and test score and gap by number of training levels.", columns)
    for ylabel, measure, methods in LEVEL_ROWS[name]:
        for suffix, default in methods.items():
            for game, method in _level_variants(table, default, measure):
                levels, lines = _levels(method), panels.setdefault((ylabel, game), {})
                for split in SPLITS:
                    if estimate := _spread(table, method, game, split, measure):
                        lines.setdefault(f"{split}{suffix}", {})[levels] = estimate
                if gap := table.gap(method, game, measure):
                    means = (mean_cell(table.cell(method, game, split, measure)) for split in SPLITS)
                    paper = numbers.gaps().get((default.algorithm, game)) if levels == DEFAULT_LEVELS else None
                    shares = (percent_cell(gap.value), percent_cell(paper))
                    gaps.add(ylabel, game, default.label, number_cell(levels, 0), *means, *shares)
    figures = [
        (f"{ylabel} on {game}, train and test, against the number of training levels", over_levels(game, ylabel, lines))
        for (ylabel, game), lines in panels.items()
    ]
    return Section(name, NOTES["gaps"], [gaps], figures)


def _level_variants(table: ScoreTable, default: Method, measure: str) -> Iterable[tuple[str, Method]]:
    """Return games and variants of `default` by number of training levels, for games with a non-default number."""
    variants = []
    for method in sorted(table.methods(measure), key=_levels):
        others = tuple(pair for pair in method.settings if pair[0] != "levels")
        if _levels(method) and (method.algorithm, others) == (default.algorithm, default.settings):
            variants.append(method)
    return itertools.product(table.games([m for m in variants if m.setting("levels")], measure), variants)


def _levels(method: Method) -> int:
    """Return the number of training levels; 0 if the setting is not a number."""
    return method.count("levels") if "levels" in dict(method.settings) else DEFAULT_LEVELS


def gap_section(table: ScoreTable) -> Section:
    """Return Figure 10."""
    measured = ((Method("ppo"), RETURN), (Method("maxent"), INTRINSIC))
    bars: dict[str, dict[Method, Estimate]] = {}
    result = Table("figure-10", "Generalisation gaps by game.", ("game", "method", "gap", "runs", "paper's text"))
    for game in table.games([method for method, _ in measured]):
        for method, measure in measured:
            if (gap := table.gap(method, game, measure)) is not None:
                bars.setdefault(game, {})[method] = gap
                entries = table.final_entries(method, game, "test", measure)
                paper = percent_cell(numbers.gaps().get((method.algorithm, game)))
                runs = number_cell(len(entries), 0)
                result.add(game, method.label, percent_cell(gap.value, 1, entries), runs, paper)
    paper_bars = {(game, Method(algorithm)): gap for (algorithm, game), gap in numbers.gaps().items() if game in bars}
    figures = grouped_bars(bars, paper_bars, "generalisation gap", as_percent=True)
    alt_text = "Bars of generalisation gaps by game"
    return Section("figure-10", NOTES["gaps"], [result], [(alt_text, figure) for figure in figures])


def neighbor_section(table: ScoreTable) -> Section | None:
    """Return Table 7, or None with fewer than two neighbour ranks."""
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
                *comparison_cells(score, None)[:2] if score else ("–", "–"),
                TableCell(str(quoted["expgen_test"])) if quoted else "–",
            )  # fmt: skip
    if len({row[1].text for row in result.rows}) < 2:
        return None
    return Section("table-7", f"The paper's gaps are recomputed from its means. {NOTES['gaps']}", [result])


def _with_rank(algorithm: str, rank: int) -> Method:
    """Return the method with this neighbour rank, which is a setting unless it is the default, 2."""
    return Method(algorithm, () if rank == 2 else (("neighbor_rank", str(rank)),))


def exploration_table(table: ScoreTable) -> Section:
    """Return the exploration measures of every explorer, in all settings."""
    columns = ("game", "explorer", "split", "intrinsic return", "interval", "share of oracle", "reached oracle")
    caption = "Intrinsic return, novelty as a share of an oracle's, and share of episodes that reach the oracle."
    result = Table("exploration", caption, columns)
    for method in table.methods(INTRINSIC):
        for game in table.games([method], INTRINSIC):
            for split in SPLITS:
                found, *cells = (table.cell(method, game, split, measure) for measure in (INTRINSIC, ORACLE, SUCCESS))
                if found is not None:
                    shares = [percent_cell(c.estimate.value, 0, c.entries) if c else "–" for c in cells]
                    interval = interval_cell(*found.estimate[1:])
                    result.add(game, method.label, split, mean_cell(found), interval, *shares)
    return Section("exploration", NOTES["exploration"], [result], heading="Exploration")
