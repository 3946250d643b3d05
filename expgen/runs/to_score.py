"""Weights that wait to be scored beside training: files, so that a kill loses no score that is due.

A learner writes them before the row of that step, the row is written before any checkpoint that follows, and the file
goes when the row has its scores. So what lies there after a kill is due, unless it is past the learner's checkpoint.
"""

import contextlib
from pathlib import Path

from expgen.runs.folder import RunFolder
from expgen.training.checkpoint import latest_checkpoint


def stored_steps(folder: RunFolder, learner: str) -> int:
    """Steps of the newest good checkpoint, from which `learner` goes on."""
    checkpoint = latest_checkpoint(folder.checkpoints_of(learner), is_quiet=True)
    return int(checkpoint.facts["env_steps"]) if checkpoint else 0


def files_to_score(folder: RunFolder, learner: str) -> list[tuple[int, Path]]:
    """Steps and files, in that order."""
    files = sorted(folder.to_score(learner).glob("*.safetensors"))
    return [(int(file.stem), file) for file in files if file.stem.isdigit()]


def drop_after(folder: RunFolder, learner: str, env_steps: int) -> None:
    """Forget what was to be scored past `env_steps`: the learner comes there again."""
    for steps, file in files_to_score(folder, learner):
        if steps > env_steps:
            file.unlink(missing_ok=True)


def remove_empty(folder: RunFolder) -> None:
    """Leave no empty folders behind where all that waited is scored."""
    learners = folder.path / "scoring" / "checkpoints"
    for place in (*learners.glob("*"), learners, learners.parent):
        with contextlib.suppress(OSError):
            place.rmdir()
