"""exploration.csv: what explorers are measured by, one row per explorer, split and evaluation."""

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
    """One row; a mean over episodes, then its 95 % interval over levels; nan where nothing was measured."""

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
    oracle_share: float  # of the novelty that an oracle finds
    oracle_share_low: float
    oracle_share_high: float
    oracle_success: float  # episodes in which that is all of it
    oracle_success_low: float
    oracle_success_high: float
    agent: str
    commit: str
    settings: str = ""

    def __post_init__(self) -> None:
        check_choice("split", self.split, SPLITS)


def exploration_row(score: Score, exploration: Exploration) -> ExplorationRow:
    """What was explored in the episodes behind `score`."""
    shared = {field.name for field in fields(ExplorationRow)} & asdict(score).keys()
    found: dict[str, Any] = {name: getattr(score, name) for name in shared}
    for measure in MEASURES:
        mean = getattr(exploration, measure) or Mean(math.nan, math.nan, math.nan)
        found |= dict(zip((measure, f"{measure}_low", f"{measure}_high"), mean, strict=True))
    return ExplorationRow(**found)


def mean_of(row: ExplorationRow, measure: str) -> Mean | None:
    """One of MEASURES; None where it was not measured."""
    mean = Mean(*(getattr(row, name) for name in (measure, f"{measure}_low", f"{measure}_high")))
    return None if math.isnan(mean.value) else mean


FILE = TableFile(ExplorationRow, "exploration")
append_exploration = FILE.append
read_exploration = FILE.numbered
