"""What a checkpoint was trained on, stored in its facts, so that a checkpoint of another run is refused.

Checkpoints of different runs can have weights of the same shapes. Checkpoints of earlier versions and the weights of
shipped agents do not say what they were trained on, and are accepted. Other settings, such as a learning rate, are not
compared: someone who edits them in config.json to train further has a reason.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.text import short_repr
from expgen.training.checkpoint import Checkpoint

FACT = "origin"  # key in a checkpoint's facts
MAX_TEXT = 40  # characters; of a longer list of levels only a digest is stored


def origin_of(env: str, algo: str, seed: int, levels: LevelSet) -> dict[str, Any]:
    """Return what tells the learner of one run from those of others, as JSON data; a resumed run keeps it."""
    text = str(levels)
    if len(text) > MAX_TEXT:
        text = f"{text[:20]}… ({hashlib.sha256(text.encode()).hexdigest()[:12]})"
    return {"env": env, "algo": algo, "seed": seed, "levels": text}


def check_origin(checkpoint: Checkpoint, expected: Mapping[str, Any], what: str) -> None:
    """Raise InputError if `checkpoint` does not have the origin `expected` of `what`."""
    stored = checkpoint.facts.get(FACT)
    for name, value in stored.items() if isinstance(stored, dict) else ():
        if name in expected and value != expected[name]:
            differs = f"{name} {short_repr(value)} instead of {short_repr(expected[name])}"
            raise InputError(f"the checkpoint of {what} is of another run: it was trained with {differs}")
