"""The first section of the page: a summary of the scores in sentences."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from expgen.paper import numbers
from expgen.report.aggregate_sections import paper_point, runs_text
from expgen.report.lines import short_steps
from expgen.report.methods import LABELS, Method
from expgen.report.score_table import Cell, ScoreTable
from expgen.report.section import Section, join_words, plural
from expgen.report.statistics import aggregates

LISTED = 6  # up to this many games get a sentence each


def finding_section(table: ScoreTable) -> Section | None:
    """Say which method is best on unseen levels, by how much and over how many runs; list missing scores."""
    ranked = {game: ranking for game in table.games() if len(ranking := _ranking(table, game)) > 1}
    if not ranked:
        return None
    if len(ranked) > LISTED:
        wins = Counter(next(iter(ranking)).label for ranking in ranked.values()).most_common()
        winners = join_words([f"{label} in {count}" for label, count in wins])
        points = [
            *_all_games(table),
            *_overall(table),
            f"Best on unseen levels: {winners} of {plural(len(ranked), 'game')}.",
        ]
    else:
        points = [_winner(table, game, ranking) for game, ranking in ranked.items()]
    return Section("finding", "", heading="Findings", points=[*points, *_missing(table, ranked)])


def _ranking(table: ScoreTable, game: str, is_default: bool = True) -> dict[Method, Cell]:
    """Return methods with default settings, or all others, by test score, the best first."""
    cells = {m: cell for m in table.methods() if m.is_default == is_default and (cell := table.cell(m, game, "test"))}
    return dict(sorted(cells.items(), key=lambda pair: -pair[1].estimate.value))


def _winner(table: ScoreTable, game: str, ranking: dict[Method, Cell]) -> str:
    """Name the best method on one game, and first a variant if its interval lies above that of the best method."""
    (first, best), (second, next_best) = list(ranking.items())[:2]
    difference = best.estimate.value - next_best.estimate.value
    text = f"{game}: highest score on unseen levels: "
    for variant, cell in _ranking(table, game, is_default=False).items():
        if cell.estimate.low > best.estimate.high:
            text += f"{variant.label} with {_described(cell)}. With default settings: "
            break
    text += f"{first.label} with {_described(best)}, "
    text += f"{difference:.2f} above {second.label} with {_described(next_best)}."
    if best.over == next_best.over == "runs":
        overlap = "overlap" if best.estimate.overlaps(*next_best.estimate[1:]) else "do not overlap"
        text += f" Their intervals over runs {overlap}."
    paper = numbers.scores("test").get((first.algorithm, game)) if best.entries[0].is_paper_game else None
    return f"{text} The paper's {first.label} has {paper}." if paper else text


def _all_games(table: ScoreTable) -> Iterable[str]:
    """Compare the best method that has scores on all of the paper's games with the best of the paper's methods."""
    games = numbers.games()
    complete = [m for m in table.methods() if all(table.final_entries(m, game, "test") for game in games)]
    scores = table.matrix([method for method in complete if method.is_default], games)
    ours = {method: {metric: value.value for metric, value in metrics.items()}
            for method, metrics in aggregates(scores, table.resamples).items()} if scores else {}  # fmt: skip
    paper = {LABELS[name]: paper_point(name, games, table.constants) for name in numbers.METHODS}
    best = max(paper, key=lambda label: paper[label]["IQM"])
    for method in sorted(ours, key=lambda method: -ours[method]["IQM"])[:1]:
        runs = runs_text(table.num_runs(method, games))
        yield (
            f"On all {len(games)} of the paper's games {method.label} has {_aggregates_text(ours[method])} ({runs}); "
            f"of the paper's methods {best} is best, with {_aggregates_text(paper[best])}."
        )


def _aggregates_text(metrics: Mapping[str, float]) -> str:
    return f"an IQM of {metrics['IQM']:.2f} and an optimality gap of {metrics['optimality gap']:.2f}"


def _overall(table: ScoreTable) -> Iterable[str]:
    """Name the method with the highest IQM over the games that methods can be compared on."""
    methods, games = table.comparable([method for method in table.methods() if method.is_default])
    scores = table.matrix(methods, games)
    found = {method: metrics["IQM"] for method, metrics in aggregates(scores, table.resamples).items()}
    if len(methods) > 1:
        first, second = sorted(methods, key=lambda method: -found[method].value)[:2]
        best, runs = found[first], runs_text(table.num_runs(first, games))
        interval = f"{best.low:.2f} to {best.high:.2f}, " if len(scores[first]) > 1 else ""
        yield (
            f"Over {plural(len(games), 'game')} {first.label} has the highest IQM of normalised scores on unseen "
            f"levels, {best.value:.2f} ({interval}{runs}), "
            f"{best.value - found[second].value:.2f} above {second.label}."
        )


def _described(cell: Cell) -> str:
    unit = "run" if cell.over != "leaders" else "leader"
    trained = f", {short_steps(cell.steps)} steps" if cell.steps else ""
    runs, episodes = plural(len(cell.entries), unit), plural(cell.episodes, "episode")
    value, low, high = cell.estimate
    interval = "" if math.isnan(low) else f"{low:.2f} to {high:.2f}; "  # a point of a training curve has none
    return f"{value:.2f} ({interval}{runs}{trained}, {episodes})"


def _missing(table: ScoreTable, ranked: dict[str, dict[Method, Cell]]) -> Iterable[str]:
    single: defaultdict[str, list[str]] = defaultdict(list)
    for game, ranking in ranked.items():
        for method, cell in ranking.items():
            if cell.over != "runs" and cell.steps:
                single[method.label].append(game)
    if single:
        methods = join_words([f"{label} ({', '.join(games)})" for label, games in single.items()])
        yield f"Missing: a second training run of {methods}. The variation between training runs is not known."
    alone = [f"{game} ({m.label})" for game in table.games() if game not in ranked for m in _ranking(table, game)]
    if alone:
        yield f"Missing: a second method on {join_words(alone)}."
    in_paper = table.where(lambda entry: entry.is_paper_game)
    played, games = in_paper.games(), numbers.games()
    if played and len(played) < len(games):
        yield f"Missing: {len(games) - len(played)} of the paper's {len(games)} games."
    absent = [label for name, label in numbers.METHODS.items() if Method(name) not in in_paper.methods()]
    if played and absent:
        yield f"Missing: the paper's methods {join_words(absent)}."
