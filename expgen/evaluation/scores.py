"""scores.csv: one row per agent, split and evaluation. Reports read these rows and those of exploration.csv alone."""

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from expgen.errors import InputError
from expgen.evaluation.table_file import TableFile

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


def _checked(row: dict[str, Any]) -> dict[str, Any]:
    """`row`, or a ValueError; of a file from before `settings`, whose agent says them in words."""
    if row["split"] not in SPLITS or not math.isfinite(row["mean_return"]):  # other columns may be without a value
        raise ValueError
    if row.get("settings") is None:
        words = row["agent"].split()
        if any("=" in word for word in words):
            row["agent"] = " ".join(word for word in words if "=" not in word)
        row["settings"] = " ".join(word for word in words if "=" in word)
    return row


FILE = TableFile(Score, "score", ("settings",), _checked)
COLUMNS = FILE.columns


def append_scores(path: Path, scores: Iterable[Score]) -> None:
    """Add rows to `path`; all or none of them, and nothing to any other file. Who appends at the same time waits."""
    FILE.append(path, list(map(_finite, scores)))


def check_can_append(path: Path) -> None:
    """An InputError where rows could not be added to `path`: to say so before they are made."""
    FILE.check_can_append(path)


def write_rows(file: io.TextIOBase, scores: Iterable[Score]) -> None:
    """A whole score file: the header and `scores`."""
    file.write(FILE.text(list(map(_finite, scores))))


def rows_so_far(path: Path) -> Sequence[Score]:
    """The rows of a file that may not be there yet, or be empty."""
    return FILE.rows_so_far(path)


def read_scores(path: Path) -> Sequence[Score]:
    """The rows of a score file; an InputError names the line that is none."""
    return [row for _, row in FILE.numbered(path)]


def numbered_scores(path: Path) -> Sequence[tuple[int, Score]]:
    """As `read_scores`, each row with the line that it ends on."""
    return FILE.numbered(path)


def _finite(score: Score) -> Score:
    if not math.isfinite(score.mean_return):  # what reads it would refuse the whole file
        raise InputError(f"the mean return of {score.agent} is {score.mean_return}; accepted: finite rewards")
    return score
