"""RunResult: what `expgen.train` answers."""

from dataclasses import dataclass

from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder


@dataclass(frozen=True)
class RunResult:
    """What training left behind."""

    folder: RunFolder
    config: TrainConfig
    diverged: tuple[str, ...]
    is_complete: bool
    failed: tuple[str, ...] = ()  # what was given up, and why: learners whose worker process died again and again
