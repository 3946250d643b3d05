"""The first thing on the page: what the scores say, in words."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise

from expgen.paper import numbers
from expgen.report.lines import short_steps
from expgen.report.methods import Method
from expgen.report.score_table import Cell, ScoreTable
from expgen.report.section import Section, counted, sentence
from expgen.report.statistics import aggregates

LISTED = 6  # games with a sentence of their own


def finding_section(table: ScoreTable) -> Section | None:
    """Who is best on unseen levels, by how much, over how many runs; and what is missing to be sure."""
    ranked = {game: ranking for game in table.games() if len(ranking := _ranking(table, game)) > 1}
    if not ranked:
        return None
    if len(ranked) > LISTED:
        wins = Counter(next(iter(ranking)).label for ranking in ranked.values()).most_common()
        who = sentence([f"{label} in {count}" for label, count in wins])
        points = [*_overall(table), f"Best on unseen levels: {who} of {counted(len(ranked), 'game')}."]
    else:
        points = [_winner(table, game, ranking) for game, ranking in ranked.items()]
    return Section("finding", "", heading="What was found", points=[*points, *_missing(table, ranked)])


def _ranking(table: ScoreTable, game: str, is_plain: bool = True) -> dict[Method, Cell]:
    """Methods with default settings, or those with other ones, by their test scores, the best first."""
    cells = {m: cell for m in table.methods() if m.has_only() == is_plain and (cell := table.cell(m, game, "test"))}
    return dict(sorted(cells.items(), key=lambda pair: -pair[1].estimate.value))


def _winner(table: ScoreTable, game: str, ranking: dict[Method, Cell]) -> str:
    (first, best), (second, next_best) = list(ranking.items())[:2]
    by = best.estimate.value - next_best.estimate.value
    text = f"{first.label} is best on unseen levels: {_described(best)}, "
    for variant, cell in _ranking(table, game, is_plain=False).items():
        if cell.estimate.low > best.estimate.high:  # by more than both intervals
            text = f"{variant.label} is best on unseen levels: {_described(cell)}. With default settings {text}"
            break
    text = f"{game}: {text}{by:.2f} above {second.label}: {_described(next_best)}."
    if best.over == next_best.over == "runs":
        apart = "overlap" if best.estimate.overlaps(*next_best.estimate[1:]) else "do not overlap"
        text += f" Their intervals over runs {apart}."
    paper = numbers.scores("test").get((first.algorithm, game)) if best.entries[0].is_of_paper else None
    return f"{text} The paper's {first.label} has {paper}." if paper else text


def _overall(table: ScoreTable) -> Iterable[str]:
    """Who is best over games, where methods can be compared on one scale."""
    methods, games = table.comparable([method for method in table.methods() if method.has_only()])
    scores = table.matrix(methods, games)
    found = {method: metrics["IQM"] for method, metrics in aggregates(scores, table.resamples).items()}
    for first, second in pairwise(sorted(methods, key=lambda method: -found[method].value)[:2]):
        best, runs = found[first], len(scores[first])
        interval = f"{best.low:.2f} to {best.high:.2f}, " if runs > 1 else ""  # one run tells of no other
        yield (
            f"Over {counted(len(games), 'game')} {first.label} has the highest IQM of normalised scores on unseen "
            f"levels, {best.value:.2f} ({interval}{counted(runs, 'run')}), "
            f"{best.value - found[second].value:.2f} above {second.label}."
        )


def _described(cell: Cell) -> str:
    what = "run" if cell.over != "leaders" else "leader"
    trained = f", {short_steps(cell.steps)} steps" if cell.steps else ""
    runs, episodes = counted(len(cell.entries), what), counted(cell.episodes, "episode")
    value, low, high = cell.estimate
    interval = "" if math.isnan(low) else f"{low:.2f} to {high:.2f}; "  # a point of a curve has none
    return f"{value:.2f} ({interval}{runs}{trained}, {episodes})"


def _missing(table: ScoreTable, ranked: dict[str, dict[Method, Cell]]) -> Iterable[str]:
    single: defaultdict[str, list[str]] = defaultdict(list)
    for game, ranking in ranked.items():
        for method, cell in ranking.items():
            if cell.over != "runs" and cell.steps:
                single[method.label].append(game)
    if single:
        who = sentence([f"{label} ({', '.join(games)})" for label, games in single.items()])
        yield f"Missing: more than one training of {who}. How far another training would differ is not known."
    alone = [f"{game} ({m.label})" for game in table.games() if game not in ranked for m in _ranking(table, game)]
    if alone:
        yield f"Missing: anything to compare with on {sentence(alone)}."
    in_paper = table.where(lambda entry: entry.is_of_paper)
    played, games = in_paper.games(), numbers.games()
    if played and len(played) < len(games):
        yield f"Missing: {len(games) - len(played)} of the paper's {len(games)} games."
    absent = [label for name, label in numbers.METHODS.items() if Method(name) not in in_paper.methods()]
    if played and absent:
        yield f"Missing: the paper's {sentence(absent)}."
