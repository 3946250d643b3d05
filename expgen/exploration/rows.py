"""exploration.csv: exploration measures, one row per explorer, split and evaluation."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from expgen.errors import check_choice
from expgen.evaluation.scores import SPLITS, Score, Split, TableFile
from expgen.exploration.explore import Exploration, Mean

EXPLORATION_FILE = "exploration.csv"
MEASURES = ("intrinsic_return", "novelty", "oracle_share", "oracle_success")


@dataclass(frozen=True)
class ExplorationRow:
    """One row: means over episodes with their 95 % intervals over levels; nan if not measured."""

    algorithm: str
    game: str
    env: str
    seed: int
    split: Split
    levels: str
    env_steps: int
    episodes: int
    intrinsic_return: float  # sum of r_I over an episode
    intrinsic_return_low: float
    intrinsic_return_high: float
    novelty: float  # steps of an episode that show a new frame
    novelty_low: float
    novelty_high: float
    oracle_share: float  # novelty as a share of the oracle's
    oracle_share_low: float
    oracle_share_high: float
    oracle_success: float  # share of episodes whose oracle share is 1
    oracle_success_low: float
    oracle_success_high: float
    agent: str
    commit: str
    settings: str = ""

    def __post_init__(self) -> None:
        check_choice("split", self.split, SPLITS)


def exploration_row(score: Score, exploration: Exploration) -> ExplorationRow:
    """Return the row of the episodes that gave `score`."""
    shared = {field.name for field in fields(ExplorationRow)} & asdict(score).keys()
    values: dict[str, Any] = {name: getattr(score, name) for name in shared}
    for measure in MEASURES:
        mean = getattr(exploration, measure) or Mean(math.nan, math.nan, math.nan)
        values |= dict(zip((measure, f"{measure}_low", f"{measure}_high"), mean, strict=True))
    return ExplorationRow(**values)


def mean_of(row: ExplorationRow, measure: str) -> Mean | None:
    """Return one of MEASURES, or None if it was not measured."""
    mean = Mean(*(getattr(row, name) for name in (measure, f"{measure}_low", f"{measure}_high")))
    return None if math.isnan(mean.value) else mean


FILE = TableFile(ExplorationRow, "exploration")
append_exploration = FILE.append
read_exploration = FILE.numbered
exploration_so_far = FILE.rows_so_far
