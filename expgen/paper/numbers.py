"""The numbers printed in the paper, read from the CSV files in this folder."""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

Row = dict[str, str]


@dataclass(frozen=True)
class Cell:
    """A mean ± standard deviation over runs."""

    mean: float
    std: float
    runs: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the mean by Student's t, from the printed mean and standard deviation."""
        half = _T_975[self.runs] * self.std / self.runs**0.5
        return self.mean - half, self.mean + half

    def __str__(self) -> str:
        """Return `8.00 ± 0.12`, with the number of digits that the paper prints."""
        digits = max(len(f"{number:g}".partition(".")[2]) for number in (self.mean, self.std))
        return f"{self.mean:.{max(digits, 1)}f} ± {self.std:.{max(digits, 1)}f}"


_T_975 = {3: 4.303, 4: 3.182, 8: 2.365, 10: 2.262}  # by runs: 97.5 % quantile of Student's t with runs − 1 degrees
RUNS = {"25m": 10, "50m": 8, "ablation_maze": 10, "ensemble_size": 10, "norm_l0_l2": 10, "knn": 3}  # as in the captions
# The paper's names of methods by the names of our algorithms.
METHODS = {
    "ppo": "PPO", "plr": "PLR", "ucb-drac": "UCB-DrAC", "ppg": "PPG", "idaac": "IDAAC", "leep": "LEEP",
    "expgen": "ExpGen-PPO", "expgen-idaac": "ExpGen-IDAAC",
}  # fmt: skip


@cache
def rows(table: str) -> tuple[Row, ...]:
    """Return the rows of `expgen/paper/TABLE.csv`."""
    text = (resources.files("expgen.paper") / f"{table}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


@cache
def games() -> tuple[str, ...]:
    """Return the sixteen games in the order of the paper's tables."""
    return tuple(dict.fromkeys(row["game"] for row in rows("test_25m")))


@cache
def cells(table: str, *keys: str) -> dict[tuple[str, ...], Cell]:
    """Return the cells of `expgen/paper/TABLE.csv` by the values of its columns `keys`.

    `ensemble_size` is Table 5, `norm_l0_l2` Tables 11 and 12.
    """
    runs = RUNS[table.removeprefix("train_").removeprefix("test_")]
    return {tuple(row[key] for key in keys): Cell(float(row["mean"]), float(row["std"]), runs) for row in rows(table)}


@cache
def scores(split: str, budget: str = "25m") -> dict[tuple[str, str], Cell]:
    """Return Table 1 or 2 (`25m`), 8 or 9 (`50m`), by (name of our algorithm, game)."""
    ours = {method: algorithm for algorithm, method in METHODS.items()}
    return {(ours[method], game): cell for (method, game), cell in cells(f"{split}_{budget}", "method", "game").items()}


def ablation() -> dict[tuple[str, ...], Cell]:
    """Return Table 10 by (the paper's name of the variant, split)."""
    return cells("ablation_maze", "algorithm", "split")


@cache
def neighbor_ranks() -> dict[int, dict[str, Cell]]:
    """Return Table 7 by k_NN: cells `maxent_train`, `maxent_test` (intrinsic returns) and `expgen_test`."""
    found = {}
    for row in rows("knn"):
        names = ("maxent_train", "maxent_test", "expgen_test")
        cells = (Cell(float(row[f"{name}_mean"]), float(row[f"{name}_std"]), RUNS["knn"]) for name in names)
        found[int(row["k_nn"])] = dict(zip(names, cells))
    return found


@cache
def normalization_bounds(difficulty: str) -> dict[str, tuple[float, float]]:
    """Return Table 3: R_min and R_max of each game for the difficulty `easy` or `hard`."""
    table = rows("normalization")
    return {row["game"]: (float(row["rmin"]), float(row["rmax"])) for row in table if row["difficulty"] == difficulty}


@cache
def gaps() -> dict[tuple[str, str], float]:
    """Return the generalisation gaps of Section 4.2 as shares, by (`maxent` or `ppo`, game); 200 training levels."""
    return {
        (algorithm, row["game"]): float(row[f"{algorithm}_gap_pct"]) / 100
        for row in rows("gaps_200_levels")
        for algorithm in ("maxent", "ppo")
    }


@dataclass(frozen=True)
class Quoted:
    """A number from a later publication."""

    value: float
    is_approximate: bool  # read off a figure


@cache
def later_aggregates() -> dict[tuple[tuple[str, str], str], Quoted]:
    """Return later published aggregates over the 16 games by ((method, source), metric); easy mode, 200 levels."""
    return {
        ((row["method"], row["source"]), row["metric"]): Quoted(float(row["value"]), row["where"] == "figure")
        for row in rows("later_aggregates")
    }
