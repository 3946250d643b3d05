"""RunResult: what `expgen.train` answers."""

from dataclasses import dataclass

from expgen.experiments.config import TrainConfig
from expgen.experiments.run_folder import RunFolder


@dataclass(frozen=True)
class RunResult:
    """What a sitting of training left behind."""

    folder: RunFolder
    config: TrainConfig
    diverged: tuple[str, ...]
    is_complete: bool
    failed: tuple[str, ...] = ()  # what was given up, and why: learners whose worker process died again and again
