"""Messages between the worker processes of runs and their parent. A run is identified by its folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from expgen.envs.vec_env import EnvSpec
from expgen.training.loop import Scores


class LearnerId(NamedTuple):
    """One learner of one run."""

    run: Path
    name: str


class Built(NamedTuple):
    """A worker has built its learners. The parent answers whether to stop; then the worker resumes and trains them."""

    specs: Mapping[Path, EnvSpec]


class Row(NamedTuple):
    """One row of metrics. The parent writes it, then answers whether to stop; the worker waits for the answer."""

    learner: LearnerId
    row: dict[str, float]


class Saved(NamedTuple):
    """A worker has written a checkpoint."""

    learner: LearnerId
    env_steps: int


class Ended(NamedTuple):
    """A learner has ended: its schedule is complete, it was asked to stop, it diverged or it failed."""

    learner: LearnerId
    env_steps: int
    has_diverged: bool = False
    error: str = ""  # one line; empty unless it failed
    traceback: str = ""


class ScoreRequest(NamedTuple):
    """Score the policy in the file `weights`.

    Without a file, score the newest checkpoint of `learner`, or the run's ensemble if `learner` is None, unless
    scores.csv has these rows; `again`: score the ensemble even then.
    """

    run: Path
    learner: str | None
    env_steps: int
    weights: Path | None
    again: bool = False


class Scored(NamedTuple):
    """The result of a score request: columns for the row of that step, or an error."""

    request: ScoreRequest
    scores: Scores
    error: str = ""
    traceback: str = ""
