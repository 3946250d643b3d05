"""scores.csv: one row per agent, split and evaluation. Reports read these rows and those of exploration.csv alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from expgen.agents.build import LoadedAgent
from expgen.envs.levels import LevelSet
from expgen.errors import InputError, check_choice
from expgen.evaluation.evaluate import Arena, Evaluation
from expgen.evaluation.table_file import TableFile
from expgen.provenance import commit

Split = Literal["train", "test"]
SPLITS: tuple[Split, Split] = ("train", "test")


@dataclass(frozen=True)
class Score:
    """One row; the columns of `scores.csv` in their order."""

    algorithm: str
    game: str
    env: str
    seed: int
    split: Split
    levels: str
    env_steps: int
    episodes: int
    mean_return: float
    std_return: float
    solved_rate: float
    ci_low: float
    ci_high: float
    agent: str  # the learner, or the algorithm for all of an ensemble
    commit: str
    settings: str = ""  # in which the agent differs from what its name means: `min_agree=6 members=10`

    def __post_init__(self) -> None:
        check_choice("split", self.split, SPLITS)
        if not math.isfinite(self.mean_return):  # other columns may be without a value
            raise InputError(f"the mean return of {self.agent} is {self.mean_return}; accepted: finite rewards")


def score_row(loaded: LoadedAgent, arena: Arena, split: Split, levels: LevelSet, evaluation: Evaluation) -> Score:
    """The row of scores.csv that says what `loaded` did on `levels`."""
    return Score(
        algorithm=loaded.algo,
        game=arena.env.partition(":")[2] or arena.env,
        env=arena.env,
        seed=loaded.seed,
        split=split,
        levels=str(levels),
        env_steps=loaded.env_steps,
        episodes=len(evaluation.episodes),
        mean_return=evaluation.mean_return,
        std_return=evaluation.std_return,
        solved_rate=evaluation.solved_rate,
        ci_low=evaluation.ci_low,
        ci_high=evaluation.ci_high,
        agent=loaded.name,
        commit=commit(),
        settings=settings_text(loaded.settings),
    )


ASIDES = ("members", "tuned")  # settings that say more of an agent and make no variant of it


def settings_text(settings: Mapping[str, Any]) -> str:
    """`{"min_agree": 6, "members": 10}` → `min_agree=6 members=10`."""
    return " ".join(f"{name}={value}" for name, value in settings.items())


def without_asides(settings: str) -> str:
    """`settings` that make an agent the variant that it is: `leader=3` of `leader=3 members=10`."""
    return " ".join(word for word in settings.split() if word.partition("=")[0] not in ASIDES)


def agent_name(score: Score, with_asides: bool = True) -> str:
    """An agent with its settings, for people."""
    return f"{score.agent} {score.settings if with_asides else without_asides(score.settings)}".strip()


FILE = TableFile(Score, "score")
COLUMNS = FILE.columns
append_scores = FILE.append
check_can_append = FILE.check_can_append
rows_so_far = FILE.rows_so_far
numbered_scores = FILE.numbered


def read_scores(path: Path) -> Sequence[Score]:
    """The rows of a score file; an InputError names the line that is none."""
    return [row for _, row in FILE.numbered(path)]
