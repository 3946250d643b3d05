"""The numbers printed in the paper, from the CSV files beside this one."""

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
        """95 % for the mean, by Student's t: all that a printed mean and standard deviation allow."""
        half = _T_975[self.runs] * self.std / self.runs**0.5
        return self.mean - half, self.mean + half

    def __str__(self) -> str:
        """`8.00 ± 0.12`: as many digits as the paper prints."""
        digits = max(len(f"{number:g}".partition(".")[2]) for number in (self.mean, self.std))
        return f"{self.mean:.{max(digits, 1)}f} ± {self.std:.{max(digits, 1)}f}"


_T_975 = {3: 4.303, 4: 3.182, 8: 2.365, 10: 2.262}  # quantile of Student's t for runs − 1 degrees of freedom, by runs
RUNS = {"25m": 10, "50m": 8, "ablation_maze": 10, "ensemble_size": 10, "norm_l0_l2": 10, "knn": 3}  # by table's caption
# The paper's columns, by our algorithms' names.
METHODS = {
    "ppo": "PPO", "plr": "PLR", "ucb-drac": "UCB-DrAC", "ppg": "PPG", "idaac": "IDAAC", "leep": "LEEP",
    "expgen": "ExpGen-PPO", "expgen-idaac": "ExpGen-IDAAC",
}  # fmt: skip


@cache
def rows(table: str) -> tuple[Row, ...]:
    """The rows of `expgen/paper/TABLE.csv`."""
    text = (resources.files("expgen.paper") / f"{table}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


@cache
def games() -> tuple[str, ...]:
    """The sixteen games in the order of the paper's tables."""
    return tuple(dict.fromkeys(row["game"] for row in rows("test_25m")))


@cache
def cells(table: str, *keys: str) -> dict[tuple[str, ...], Cell]:
    """The means of `expgen/paper/TABLE.csv` by the values in its columns `keys`.

    `ensemble_size` is Table 5, `norm_l0_l2` Tables 11 and 12.
    """
    runs = RUNS[table.removeprefix("train_").removeprefix("test_")]
    return {tuple(row[key] for key in keys): Cell(float(row["mean"]), float(row["std"]), runs) for row in rows(table)}


@cache
def scores(split: str, budget: str = "25m") -> dict[tuple[str, str], Cell]:
    """Tables 1 and 2 (`25m`), 8 and 9 (`50m`): cells by (our algorithm's name, game)."""
    ours = {method: algorithm for algorithm, method in METHODS.items()}
    return {(ours[method], game): cell for (method, game), cell in cells(f"{split}_{budget}", "method", "game").items()}


def ablation() -> dict[tuple[str, ...], Cell]:
    """Table 10, by (the paper's name of the variant, split)."""
    return cells("ablation_maze", "algorithm", "split")


@cache
def neighbor_ranks() -> dict[int, dict[str, Cell]]:
    """Table 7, by k_NN: cells `maxent_train`, `maxent_test` (intrinsic returns) and `expgen_test`."""
    names = ("maxent_train", "maxent_test", "expgen_test")
    return {
        int(row["k_nn"]): {
            name: Cell(float(row[f"{name}_mean"]), float(row[f"{name}_std"]), RUNS["knn"]) for name in names
        }
        for row in rows("knn")
    }


@cache
def normalization_bounds(difficulty: str) -> dict[str, tuple[float, float]]:
    """Table 3: R_min and R_max of each game, `easy` or `hard`."""
    of_mode = [row for row in rows("normalization") if row["difficulty"] == difficulty]
    return {row["game"]: (float(row["rmin"]), float(row["rmax"])) for row in of_mode}


@cache
def gaps() -> dict[tuple[str, str], float]:
    """Generalisation gaps in the text of Section 4.2, as shares, by (`maxent` or `ppo`, game); 200 levels."""
    return {
        (algorithm, row["game"]): float(row[f"{algorithm}_gap_pct"]) / 100
        for row in rows("gaps_200_levels")
        for algorithm in ("maxent", "ppo")
    }


@dataclass(frozen=True)
class Quoted:
    """A number of a later paper; `is_about`: read off a figure."""

    value: float
    is_about: bool


@cache
def later_aggregates() -> dict[tuple[tuple[str, str], str], Quoted]:
    """Aggregates over the sixteen games published since, by ((method, source), metric); easy mode, 200 levels."""
    return {
        ((row["method"], row["source"]), row["metric"]): Quoted(float(row["value"]), row["where"] == "figure")
        for row in rows("later_aggregates")
    }
