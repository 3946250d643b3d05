"""Attack: wrong calls of public functions; each must raise a one-line InputError or work."""

import itertools
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import expgen

ODD: list[Any] = [
    None, True, -1, 0, 1.5, 2**70, float("nan"), float("inf"), "", "x", "\x00", b"x", "a/../b", [], [None], {},
    {"a": 1}, (1, 2), set(), object(), print, np.array([1, 2]), np.float32(2.5), np.array("x"), torch.zeros(2),
    Path("x"), torch.device("cpu"), range(3), 10**400, "٣",
]  # fmt: skip
SMALL: dict[str, Any] = {
    "preset": "smoke", "device": "cpu", "levels": "20", "envs": 4, "rollout_steps": 8, "minibatches": 1, "epochs": 1,
    "features": 8, "eval_every": 0, "eval_episodes": 2, "steps": 32,
}  # fmt: skip
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "make_env": ("env", "levels", "num_envs", "seed", "threads", "full_view", "size", "nonsense"),
    "evaluate": ("agent", "env", "episodes", "seed"),
    "load_agent": ("run", "learner", "seed", "device", "weights", "min_agree", "nonsense"),
    "train": (
        "env", "algo", "preset", "run", "device", "processes", "hang_seconds", "resume", "take_over", "levels", "seed",
        "members", "steps", "envs", "checkpoint_seconds", "options", "gamma", "memory", "features", "nonsense",
    ),
    "LevelSet.parse": ("levels",),
}  # fmt: skip


class Call(NamedTuple):
    """One call with one odd argument."""

    function: str
    argument: str
    value: Any

    def __str__(self) -> str:
        return f"{self.function}({self.argument}={self.value!r:.60})"


def calls(rng: random.Random) -> Iterator[Call]:
    """Yield every odd value for every argument, in random order."""
    pairs = [(name, argument) for name, arguments in ARGUMENTS.items() for argument in arguments]
    every = [Call(*pair, value) for pair, value in itertools.product(pairs, ODD)]
    rng.shuffle(every)
    yield from every


def flaw_of(call: Call, folder: Path) -> str:
    """Return what is wrong with the outcome of a call; empty for a result or a one-line InputError."""
    try:
        _run(call, folder)
    except expgen.InputError as error:
        return "" if "\n" not in str(error) else "is refused in several lines"
    except Exception as error:  # the caller would see it
        return f"raises {type(error).__name__}: {error}"[:150]
    return ""


def _run(call: Call, folder: Path) -> None:
    odd = {call.argument: call.value}
    match call.function:
        case "make_env":
            expgen.make_env(**{"env": "minimaze", "num_envs": 2, **odd}).close()
        case "evaluate":
            good = {"agent": _agent(), "env": expgen.make_env("minimaze", num_envs=2), "episodes": 2}
            expgen.evaluate(**{**good, **odd})
        case "load_agent":
            expgen.load_agent(**{"run": "minimaze/expgen", **odd})
        case "train":
            expgen.train(**{**SMALL, "run": tempfile.mkdtemp(dir=folder), "resume": True, **odd})
        case "LevelSet.parse":
            expgen.LevelSet.parse(call.value)


def _agent() -> Callable[..., Any]:
    return expgen.load_agent("minimaze/ppo")  # type: ignore[return-value]
