"""ScoreTable: score rows, asked by method, game and split."""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from expgen.evaluation.normalize import CONSTANTS, ConstantSet, generalization_gap, normalized
from expgen.evaluation.scores import Score, Split
from expgen.paper import numbers
from expgen.report.entry import Entry
from expgen.report.methods import RETURN, Method
from expgen.report.statistics import RESAMPLES, Estimate, mean_of_runs

STANDS_FOR = {"minimaze": "maze"}  # the built-in maze pays what ProcGen's Maze pays, so its constants serve
SAME_STEPS = 0.98  # trainings this close in length are of one length: rollouts end where they end


@dataclass(frozen=True)
class Cell:
    """A mean over runs and the rows it comes from."""

    estimate: Estimate
    entries: tuple[Entry, ...]

    @property
    def episodes(self) -> int:
        return sum(entry.row.episodes for entry in self.entries)

    @property
    def steps(self) -> int:
        """How long its runs were trained."""
        return max(entry.row.env_steps for entry in self.entries)

    @property
    def over(self) -> str:
        """What the interval is taken over; leaders of one population share all members and the explorer."""
        seeds = {entry.run[0] for entry in self.entries}
        if len(self.entries) == 1:
            return "levels"
        return "runs" if len(seeds) == len(self.entries) else "leaders"


class ScoreTable:
    """Rows of one or more score files."""

    def __init__(self, entries: Sequence[Entry], constants: ConstantSet = "easy", resamples: int = RESAMPLES) -> None:
        self.entries = list(entries)
        self.constants, self.resamples = constants, resamples
        self._at: defaultdict[tuple[Method, str, str, str], list[Entry]] = defaultdict(list)
        for entry in self.entries:
            self._at[entry.method, entry.row.game, entry.row.split, entry.measure].append(entry)

    def where(self, is_kept: Callable[[Entry], bool]) -> "ScoreTable":
        """The table of those rows for which `is_kept`."""
        return ScoreTable([entry for entry in self.entries if is_kept(entry)], self.constants, self.resamples)

    def methods(self, measure: str = RETURN) -> list[Method]:
        """Those with scores, in the paper's order."""
        found = {method for method, _, _, what in self._at if what == measure}
        return sorted(found, key=lambda method: method.rank)

    def games(self, methods: Iterable[Method] | None = None, measure: str = RETURN) -> list[str]:
        """Games that any of `methods` was scored on: the paper's in its order, then others."""
        among = None if methods is None else set(methods)
        found = {game for method, game, _, what in self._at if what == measure and (among is None or method in among)}
        known = [game for game in numbers.games() if game in found]
        return known + sorted(found - set(known))

    def final(self, method: Method, game: str, split: Split, measure: str = RETURN) -> list[Entry]:
        """One row per run, all trained for as long: that of the most episodes; of equals the last that was written.

        The steps are those that most runs ended with, and of equals the most. Scores on all unseen levels come before
        scores on a hand-picked few of them, and evaluations before points of a curve, which have no interval.
        """
        return _one_per_run(self._at.get((method, game, split, measure), []), split)

    def cell(self, method: Method, game: str, split: Split, measure: str = RETURN) -> Cell | None:
        """The mean over runs with its interval: over runs, or over levels where there is but one run."""
        return _mean(self.final(method, game, split, measure))

    def by_members(self, method: Method, game: str, split: Split) -> dict[int, Cell]:
        """As `cell`, of whole ensembles apart by how many members they have, where their rows say it."""
        entries = self._at.get((method, game, split, RETURN), [])
        sizes = sorted({entry.members for entry in entries} - {0})
        of_size = {size: _one_per_run([entry for entry in entries if entry.members == size], split) for size in sizes}
        return {size: cell for size, rows in of_size.items() if (cell := _mean(rows))}

    def over_leaders(self, methods: Iterable[Method], games: Iterable[str]) -> dict[Method, list[str]]:
        """Those of `methods` that several leaders of one population scored on unseen levels, and in which games."""
        found: defaultdict[Method, list[str]] = defaultdict(list)
        for method, game in itertools.product(methods, games):
            if (cell := self.cell(method, game, "test")) and cell.over == "leaders":
                found[method].append(game)
        return found

    def is_normalizable(self, game: str) -> bool:
        return STANDS_FOR.get(game, game) in CONSTANTS[self.constants]

    def normalized(self, score: float, game: str) -> float:
        """R_norm with this report's constants."""
        return normalized(score, STANDS_FOR.get(game, game), self.constants)

    def gap(self, method: Method, game: str, measure: str = RETURN) -> Estimate | None:
        """The generalisation gap: of the means over runs, and its standard deviation over runs as `low`, `high`.

        Train and test scores are of the same runs after the same steps.
        """
        tested = self.final(method, game, "test", measure)
        rows = self._at.get((method, game, "train", measure), []) if tested else []
        trained = [entry for entry in rows if _is_as_long(entry, tested[0])]
        train, test = ({e.run: e.row.mean_return for e in rows} for rows in (_best_of_each(trained), tested))
        both = sorted(train.keys() & test.keys())
        if not both:
            return None
        value = generalization_gap(float(np.mean([train[r] for r in both])), float(np.mean([test[r] for r in both])))
        spread = float(np.std([generalization_gap(train[r], test[r]) for r in both], ddof=1)) if len(both) > 1 else 0.0
        return None if math.isnan(value) else Estimate(value, value - spread, value + spread)

    def matrix(self, methods: Sequence[Method], games: Sequence[str]) -> dict[Method, ndarray]:
        """Normalised test scores `[runs, games]`: as many runs as every game has, the first ones."""
        found = {}
        for method in methods:
            rows = {game: self.final(method, game, "test") for game in games}
            runs = min(map(len, rows.values()))
            scores = [[self.normalized(entry.row.mean_return, game) for entry in rows[game][:runs]] for game in games]
            found[method] = np.array(scores).T
        return found

    def comparable(self, methods: Sequence[Method]) -> tuple[list[Method], list[str]]:
        """Which of `methods` to compare on which games: all were tested on all, and as many cells as possible."""
        on = {m: [g for g in self.games([m]) if self.is_normalizable(g) and self.final(m, g, "test")] for m in methods}
        pairs = [([m for m in methods if set(games) <= set(on[m])], games) for games in on.values() if games]
        return max(pairs, key=lambda pair: len(pair[0]) * len(pair[1]), default=([], []))

    def curves(self, method: Method, game: str, split: Split) -> dict[tuple[int, int], ndarray]:
        """For each run its scores while training, `[points, 2]`: steps and mean return."""
        points: defaultdict[tuple[int, int], dict[int, float]] = defaultdict(dict)
        for entry in self._at.get((method, game, split, RETURN), []):
            points[entry.run][entry.row.env_steps] = entry.row.mean_return
        return {run: np.array(sorted(points[run].items())) for run in sorted(points)}


def _mean(entries: Sequence[Entry]) -> Cell | None:
    """The mean over `entries`, one of each run; of a single run the interval that its row has, over levels."""
    if not entries:
        return None
    row = entries[0].row
    alone = Estimate(row.mean_return, row.ci_low, row.ci_high)
    found = alone if len(entries) == 1 else mean_of_runs([entry.row.mean_return for entry in entries])
    return Cell(found, tuple(entries))


def _one_per_run(rows: Sequence[Entry], split: Split) -> list[Entry]:
    if split == "test":
        rows = [entry for entry in rows if entry.row.levels == "all"] or rows
    last = _best_of_each(rows)
    if not last:
        return []
    usual = max(last, key=lambda one: (sum(_is_as_long(one, other) for other in last), one.row.env_steps))
    return _best_of_each([entry for entry in rows if _is_as_long(entry, usual)])


def _best_of_each(rows: Iterable[Entry]) -> list[Entry]:
    """Of every run the row of most weight, and of equals the last."""
    best = {entry.run: entry for entry in sorted(rows, key=lambda entry: _weight(entry.row))}
    return [best[run] for run in sorted(best)]


def _is_as_long(one: Entry, other: Entry) -> bool:
    """Whether both were trained for as many steps."""
    steps = (one.row.env_steps, other.row.env_steps)
    return min(steps) >= SAME_STEPS * max(steps)


def _weight(row: Score) -> tuple[bool, int, int]:
    return not math.isnan(row.ci_low), row.env_steps, row.episodes
