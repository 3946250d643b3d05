"""ScoreTable: score rows, looked up by method, game and split."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from expgen.evaluation.normalize import CONSTANTS, ConstantSet, generalization_gap, normalized
from expgen.evaluation.scores import Split
from expgen.paper import numbers
from expgen.report.entry import Entry
from expgen.report.methods import RETURN, Method
from expgen.report.statistics import RESAMPLES, Estimate, mean_of_runs

NORMALIZED_AS = {"minimaze": "maze"}  # minimaze has the rewards of ProcGen's Maze, so the same constants apply
SAME_STEPS = 0.98  # ratio from which step counts are treated as equal: runs end at the end of a rollout


@dataclass(frozen=True)
class Cell:
    """A mean over runs and the score rows that it comes from."""

    estimate: Estimate
    entries: tuple[Entry, ...]

    @property
    def episodes(self) -> int:
        return sum(entry.row.episodes for entry in self.entries)

    @property
    def steps(self) -> int:
        """Training steps of the longest run."""
        return max(entry.row.env_steps for entry in self.entries)

    @property
    def over(self) -> str:
        """The unit that the interval is over: levels, runs or leaders (those of one population share its policies)."""
        seeds = {entry.run[0] for entry in self.entries}
        if len(self.entries) == 1:
            return "levels"
        return "runs" if len(seeds) == len(self.entries) else "leaders"


class ScoreTable:
    """Rows of one or more score files."""

    def __init__(self, entries: Sequence[Entry], constants: ConstantSet = "easy", resamples: int = RESAMPLES) -> None:
        self.entries = list(entries)
        self.constants, self.resamples = constants, resamples
        self._groups: defaultdict[tuple[Method, str, str, str], list[Entry]] = defaultdict(list)
        for entry in self.entries:
            for method in (entry.method, *map(Method, entry.names)):
                self._groups[method, entry.row.game, entry.row.split, entry.measure].append(entry)

    def where(self, is_kept: Callable[[Entry], bool]) -> "ScoreTable":
        """Return a table of the rows for which `is_kept` is true."""
        return ScoreTable([entry for entry in self.entries if is_kept(entry)], self.constants, self.resamples)

    def methods(self, measure: str = RETURN) -> list[Method]:
        """Return the methods that have rows of `measure`, in the paper's order."""
        found = {method for method, _, _, row_measure in self._groups if row_measure == measure}
        return sorted(found, key=lambda method: method.rank)

    def games(self, methods: Iterable[Method] | None = None, measure: str = RETURN) -> list[str]:
        """Return the games that `methods` (default: all) were scored on: the paper's in its order, then others."""
        wanted = set(self.methods(measure) if methods is None else methods)
        found = {game for method, game, _, row_measure in self._groups if row_measure == measure and method in wanted}
        known = [game for game in numbers.games() if game in found]
        return known + sorted(found - set(known))

    def final_entries(self, method: Method, game: str, split: Split, measure: str = RETURN) -> list[Entry]:
        """Return one row per run, all after the same number of training steps.

        The number of steps is the one that most runs ended with, and the largest of these on a tie. Of a run's rows the
        one with the most episodes is taken, and on a tie the last one in the file. Rows on all unseen levels have
        priority over rows on some of them, and evaluations over points of a training curve, which have no interval.
        """
        rows = self._groups.get((method, game, split, measure), [])
        if split == "test":
            rows = [entry for entry in rows if entry.row.levels == "all"] or rows
        last = _best_entry_per_run(rows)
        if not last:
            return []
        usual = max(last, key=lambda one: (sum(_is_equally_long(one, other) for other in last), one.row.env_steps))
        return _best_entry_per_run([entry for entry in rows if _is_equally_long(entry, usual)])

    def cell(self, method: Method, game: str, split: Split, measure: str = RETURN) -> Cell | None:
        """Return the mean over runs with its interval: over runs, or over levels if there is a single run."""
        entries = tuple(self.final_entries(method, game, split, measure))
        if len(entries) > 1:
            return Cell(mean_of_runs([entry.row.mean_return for entry in entries]), entries)
        if not entries:
            return None
        row = entries[0].row
        return Cell(Estimate(row.mean_return, row.ci_low, row.ci_high), entries)

    def by_members(self, method: Method, game: str, split: Split) -> dict[int, Cell]:
        """Return `cell` separately for each ensemble size, from the rows that state it (`members=…`)."""
        cells = {}
        for size in sorted({entry.members for entry in self.entries} - {0}):
            of_size = ScoreTable([entry for entry in self.entries if entry.members == size])
            if cell := of_size.cell(method, game, split):
                cells[size] = cell
        return cells

    def is_normalizable(self, game: str) -> bool:
        return NORMALIZED_AS.get(game, game) in CONSTANTS[self.constants]

    def normalized(self, score: float, game: str) -> float:
        """Return R_norm with the constants of this table."""
        return normalized(score, NORMALIZED_AS.get(game, game), self.constants)

    def gap(self, method: Method, game: str, measure: str = RETURN) -> Estimate | None:
        """Return the generalisation gap of the mean scores; `low` and `high` are one standard deviation over runs away.

        Train and test scores are those of the same runs after the same number of steps; None if no run has both.
        """
        tested = self.final_entries(method, game, "test", measure)
        rows = self._groups.get((method, game, "train", measure), []) if tested else []
        trained = [entry for entry in rows if _is_equally_long(entry, tested[0])]
        train, test = ({e.run: e.row.mean_return for e in rows} for rows in (_best_entry_per_run(trained), tested))
        both = sorted(train.keys() & test.keys())
        if not both:
            return None
        value = generalization_gap(float(np.mean([train[r] for r in both])), float(np.mean([test[r] for r in both])))
        spread = float(np.std([generalization_gap(train[r], test[r]) for r in both], ddof=1)) if len(both) > 1 else 0.0
        return None if math.isnan(value) else Estimate(value, value - spread, value + spread)

    def matrix(self, methods: Sequence[Method], games: Sequence[str]) -> dict[Method, ndarray]:
        """Return normalised test scores `[runs, games]`, or means over runs `[1, games]` if their number differs.

        rliable needs as many runs of every game, and leaving some out would replace means by scores of the first seeds.
        """
        found = {}
        for method in methods:
            rows = {game: self.final_entries(method, game, "test") for game in games}
            scores = [[self.normalized(entry.row.mean_return, game) for entry in rows[game]] for game in games]
            if len(set(map(len, scores))) > 1:
                scores = [[float(np.mean(of_game))] for of_game in scores]
            found[method] = np.array(scores).T
        return found

    def num_runs(self, method: Method, games: Iterable[str]) -> tuple[int, int]:
        """Return the smallest and the largest number of runs that a game's test score is the mean of."""
        counts = [len(self.final_entries(method, game, "test")) for game in games]
        return min(counts), max(counts)

    def comparable(self, methods: Sequence[Method]) -> tuple[list[Method], list[str]]:
        """Return methods and games such that every method was tested on every game, with as many pairs as possible.

        Several methods on few games have priority over a single method on many.
        """
        tested: dict[Method, list[str]] = {}
        for method in methods:
            games = [game for game in self.games([method]) if self.is_normalizable(game)]
            tested[method] = [game for game in games if self.final_entries(method, game, "test")]
        pairs = [([m for m in methods if set(games) <= set(tested[m])], games) for games in tested.values() if games]
        return max(pairs, key=lambda pair: (len(pair[0]) > 1, len(pair[0]) * len(pair[1])), default=([], []))

    def curves(self, method: Method, game: str, split: Split) -> dict[tuple[int, int], ndarray]:
        """Return the scores of each run during training, `[points, 2]`: steps and mean return."""
        points: defaultdict[tuple[int, int], dict[int, float]] = defaultdict(dict)
        for entry in self._groups.get((method, game, split, RETURN), []):
            points[entry.run][entry.row.env_steps] = entry.row.mean_return
        return {run: np.array(sorted(points[run].items())) for run in sorted(points)}


def _best_entry_per_run(entries: Iterable[Entry]) -> list[Entry]:
    """Return each run's evaluation with the most steps and episodes, and the last one on a tie."""

    def priority(entry: Entry) -> tuple[bool, int, int]:
        return not math.isnan(entry.row.ci_low), entry.row.env_steps, entry.row.episodes

    best = {entry.run: entry for entry in sorted(entries, key=priority)}
    return [best[run] for run in sorted(best)]


def _is_equally_long(one: Entry, other: Entry) -> bool:
    """Whether both were trained for the same number of steps, up to SAME_STEPS."""
    steps = (one.row.env_steps, other.row.env_steps)
    return min(steps) >= SAME_STEPS * max(steps)
