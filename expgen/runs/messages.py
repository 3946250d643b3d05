"""What worker processes of runs and their parent tell each other. A run is named by its folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from expgen.envs.vec_env import EnvSpec
from expgen.training.loop import Scores


class LearnerId(NamedTuple):
    """One learner among those of all runs under way."""

    run: Path
    name: str


class Built(NamedTuple):
    """A worker has built its learners. It trains on from their checkpoints when its parent answers whether to stop."""

    specs: Mapping[Path, EnvSpec]


class Row(NamedTuple):
    """One row of metrics. The worker goes on when its parent has written it and answers whether to stop."""

    learner: LearnerId
    row: dict[str, float]


class Saved(NamedTuple):
    """A worker has written a checkpoint."""

    learner: LearnerId
    env_steps: int


class Ended(NamedTuple):
    """A learner's life is over: at its schedule's end, on request, or because it diverged or failed."""

    learner: LearnerId
    env_steps: int
    has_diverged: bool = False
    error: str = ""  # why it failed, in one line
    traceback: str = ""


class ScoreRequest(NamedTuple):
    """Play the policy in the file `weights`; where `learner` is None, the run's whole ensemble."""

    run: Path
    learner: str | None
    env_steps: int
    weights: Path | None


class Scored(NamedTuple):
    """The answer: columns for the row of that step, or why there are none."""

    request: ScoreRequest
    scores: Scores
    error: str = ""
    traceback: str = ""
