"""Attack: untrusted run folders, each malicious in one way, opened by every verb that opens runs."""

import json
import os
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from expgen.training.checkpoint import read_checkpoint, write_checkpoint
from tests.attack.damage import damaged, mangled
from tests.attack.sandbox import flaw_in, run_command

SLOW_SECONDS = 45.0  # after which a command is interrupted
MARKER = "imported"  # a file that the malicious module writes when it is imported
MODULE = f"open({MARKER!r}, 'w').close()\n"
JSON_FILES = ("config.json", "agent.json", "journal.json")
FILES = (*JSON_FILES, "metrics.csv", "scores.csv", "exploration.csv", "adopted.json", "failures.log")
VERBS: dict[str, list[object]] = {
    "evaluate": ["evaluate", "run", "--episodes", 2],
    "play": ["play", "run", "--level", 1000, "--out", "episode.html"],
    "status": ["status", "."],
    "report": ["report", "run", "--out", "report", "--resamples", 10],
    "train": ["train", "--resume", "--run", "run", "--steps", 96, "--device", "cpu"],
}
Spoil = Callable[[Path], None]  # makes a good run folder malicious


def _edit(name: str, *path: Any, value: Any) -> Spoil:
    """Set one value of a JSON file."""

    def spoil(run: Path) -> None:
        data = inner = json.loads((run / name).read_text())
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = value
        (run / name).write_text(json.dumps(data))

    return spoil


def _replace(name: str, content: bytes) -> Spoil:
    return lambda run: (run / name).write_bytes(content) and None


def _put(name: str, make: Callable[[Path], object]) -> Spoil:
    """Replace a file with something else."""

    def spoil(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        make(run / name)

    return spoil


def _weights(change: Callable[[torch.Tensor], torch.Tensor], only_policy: bool = True) -> Spoil:
    """Write wrong weights with a correct checksum."""

    def spoil(run: Path) -> None:
        for file in run.glob("checkpoints/*/*.safetensors"):
            tensors, facts = read_checkpoint(file)
            changed = {name: change(t) if name.startswith("policy.") else t for name, t in tensors.items()}
            write_checkpoint(file, changed, facts)

    return spoil


def _facts(**facts: Any) -> Spoil:
    def spoil(run: Path) -> None:
        for file in run.glob("checkpoints/*/*.safetensors"):
            tensors, before = read_checkpoint(file)
            known = {**before, **facts}
            write_checkpoint(file, tensors, {name: value for name, value in known.items() if value is not ...})

    return spoil


def _checkpoints(content: bytes) -> Spoil:
    def spoil(run: Path) -> None:
        for file in run.glob("checkpoints/*/*.safetensors"):
            file.write_bytes(content)

    return spoil


def _special_checkpoint(make: Callable[[Path], object]) -> Spoil:
    def spoil(run: Path) -> None:
        for file in run.glob("checkpoints/*/*.safetensors"):
            file.unlink()
            make(file)

    return spoil


def _header(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def named() -> dict[str, Spoil]:
    """Return the hand-written attacks by name."""
    deep = b"[" * 200_000 + b"]" * 200_000
    deep_header = '{"__metadata__":' + '{"a":' * 100_000 + "1" + "}" * 100_001
    promise = {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}
    huge = {"x": promise, "__metadata__": {}}
    many = {f"policy.{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(200_000)}
    ways: dict[str, Spoil] = {
        "env of a stranger's module": _edit("config.json", "train", "env", value="gymnasium:stranger:Maze-v0"),
        "agent's env of a stranger's module": _edit("agent.json", "env", value="gymnasium:stranger:Maze-v0"),
        "option that names a module": _edit("agent.json", "options", value={"entry_point": "stranger:Maze"}),
        "a billion members": _edit("config.json", "train", "members", value=10**9),
        "a quadrillion environments": _edit("config.json", "train", "envs", value=10**15),
        "a network of terabytes": _edit("config.json", "train", "network", "features", value=10**7),
        "agent's network of terabytes": _edit("agent.json", "members", 0, "network", "features", value=10**7),
        "a million layers": _edit("agent.json", "members", 0, "network", "extra_layers", value=10**6),
        "observations of terabytes": _edit("agent.json", "spec", "obs_shape", value=[10**6, 10**6, 3]),
        "two billion actions": _edit("agent.json", "spec", "num_actions", value=2 * 10**9),
        "two billion levels": _edit("agent.json", "levels", value="0:2000000000"),
        "two billion test levels": _edit("config.json", "train", "test_levels", value="1000:2000000000"),
        "a maze of terabytes": _edit("agent.json", "options", value={"size": 10**6 + 1}),
        "a quorum of a billion": _edit("agent.json", "consensus", "min_agree", value=10**9),
        "policies above the folder": _edit("agent.json", "members", 0, "path", value="../../secret"),
        "policies at the root": _edit("agent.json", "members", 0, "path", value="/etc"),
        "terminal escapes for a name": _edit("agent.json", "algo", value="\x1b]0;owned\x07\x1b[31mppo"),
        "a process that is everybody": _edit("journal.json", 0, "pid", value=-1),
        "an owner of the year 30000": _edit("journal.json", 0, "session", "began", value=1e12),
        "NaN weights": _weights(lambda t: t * float("nan")),
        "infinite weights": _weights(lambda t: t + float("inf")),
        "complex weights": _weights(lambda t: t.to(torch.complex64)),
        "weights of another shape": _weights(lambda t: t.flatten()[:1]),
        "no weights": _weights(lambda t: t[:0]),
        "no facts": _facts(env_steps=...),
        "facts of another type": _facts(env_steps="many", updates=None, sessions=[[1]]),
        "facts beyond numbers": _facts(env_steps=10**30, seconds=1e308),
        "facts below nought": _facts(env_steps=-5, updates=-1),
        "a header nested deeply": _checkpoints(_header(deep_header)),
        "a header of promises": _checkpoints(_header(json.dumps(huge))),
        "a header of many names": _checkpoints(_header(json.dumps(many))),
        "a header longer than memory": _checkpoints(struct.pack("<Q", 2**62) + b"{}"),
        "a zip for a checkpoint": _checkpoints(b"PK\x03\x04" + bytes(1000)),
        "a pipe for a checkpoint": _special_checkpoint(os.mkfifo),
        "a device for a checkpoint": _special_checkpoint(lambda path: path.symlink_to("/dev/zero")),
        "a link out for a checkpoint": _special_checkpoint(lambda path: path.symlink_to("/etc/hostname")),
        "a checkpoint with a name that is no number": lambda run: next(run.glob("checkpoints/*/*")).rename(
            run / "checkpoints" / "member0" / "last.safetensors"
        ) and None,
        "metrics of binary": _replace("metrics.csv", bytes(range(256)) * 100),
        "metrics in one line of 50 MB": _replace("metrics.csv", b"learner,env_steps,seconds," + b"x" * 50_000_000),
        "scores that are formulas": _replace("scores.csv", b"=cmd|' /C calc'!A0\n"),
    }  # fmt: skip
    for name in FILES:
        ways[f"a pipe for {name}"] = _put(name, os.mkfifo)
        ways[f"a dangling link for {name}"] = _put(name, lambda path: path.symlink_to("../../outside"))
        ways[f"a folder for {name}"] = _put(name, Path.mkdir)
        ways[f"/dev/zero for {name}"] = _put(name, lambda path: path.symlink_to("/dev/zero"))
    for name in JSON_FILES:
        ways[f"{name} nested deeply"] = _replace(name, deep)
        ways[f"{name} of 40 MB"] = _replace(name, b"[" + b"1," * 20_000_000 + b"1]")
        ways[f"{name} with a number of a million digits"] = _replace(name, b'{"train":' + b"9" * 1_000_000 + b"}")
        ways[f"{name} empty"] = _replace(name, b"")
    return ways


def fuzzed(rng: random.Random) -> Iterator[tuple[str, Spoil]]:
    """Yield random attacks without end."""
    while True:
        seed = rng.randrange(2**32)
        name = rng.choice(FILES[:5])

        def spoil(run: Path, name: str = name, seed: int = seed) -> None:
            own = random.Random(seed)
            content = (run / name).read_bytes()
            if name.endswith(".json") and own.random() < 0.7:
                (run / name).write_text(json.dumps(mangled(json.loads(content), own)))
            else:
                (run / name).write_bytes(damaged(content, own))

        yield f"{name} damaged ({seed})", spoil


def attack(run: Path, scratch: Path, spoil: Spoil, verb: str) -> str:
    """Open a malicious copy of `run` with `verb`; return what is wrong with the outcome, or an empty text."""
    shutil.rmtree(scratch, ignore_errors=True)
    here = scratch / "deep" / "here"
    shutil.copytree(run, here / "run")
    (here / "stranger.py").write_text(MODULE)
    spoil(here / "run")
    before = {path for path in scratch.rglob("*") if here / "run" not in path.parents}
    outcome = run_command(VERBS[verb], here, interrupt_after=SLOW_SECONDS)
    if flaw := flaw_in(outcome):
        return flaw
    if outcome.seconds > SLOW_SECONDS:
        return f"works on for {SLOW_SECONDS:.0f} s until it is interrupted"
    if any((folder / MARKER).exists() for folder in (here, here / "run", scratch)):
        return "runs the stranger's module"
    allowed = {"deep/here/report", "deep/here/episode.html"}
    after = {path for path in scratch.rglob("*") if here / "run" not in path.parents}
    new = {path.relative_to(scratch).as_posix() for path in after - before}
    outside = sorted(name for name in new if not any(name == ok or name.startswith(f"{ok}/") for ok in allowed))
    if outside:
        return f"writes {outside[0]}"
    if outcome.status == 2 and verb == "report" and (here / "report").exists():
        return "leaves half a report"
    return ""
