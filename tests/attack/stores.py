"""Attack: untrusted storage; fetch must not write outside its folder."""

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path

import fsspec

from expgen.errors import InputError
from expgen.storage.mirror import object_name
from expgen.storage.view import fetch
from tests.attack.damage import damaged
from tests.attack.sandbox import flaw_in, run_forked

CONTENT = b"planted"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
NAMES = [
    "../a.csv", "runs/../../a.csv", "/etc/planted", "/tmp/../planted", "a\\..\\b", "a\0b", "a\nb", "\x1b[31m.csv", ".",
    "..", "", "a//b", "./a", "a/./b", "~/.profile", "a/" * 400 + "b", "x" * 300, "con/../../../x", "...", "a..b",
    "good.csv", "runs/m/a.csv",
]  # fmt: skip


def stores(rng: random.Random) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield names and contents of stores without end, the hand-written ones first."""
    for name in NAMES:
        for prefix in ("", "../", "runs/../../", "runs/x/"):
            yield f"{prefix}|{name}"[:60], _snapshot(prefix, {name: DIGEST})
    while True:
        keys = _snapshot(rng.choice(["", "runs/x/"]), {"a.csv": DIGEST})
        key = rng.choice(sorted(keys))
        yield "damaged", {**keys, key: damaged(keys[key], rng)}


def _snapshot(prefix: str, files: dict[str, str]) -> dict[str, bytes]:
    snapshot = {"is_open": False, "written": 1.0, "files": files}
    objects = {f"{prefix}{object_name(name, DIGEST)}": CONTENT for name in files if "\0" not in name}
    return {f"{prefix}lists/000001-000000000-abc.json": json.dumps(snapshot).encode(), **objects}


def attack(keys: dict[str, bytes], scratch: Path) -> str:
    """Fetch from such a store; return what is wrong with the outcome, or an empty text."""
    target = scratch / "deep" / "here"
    target.mkdir(parents=True)

    def call() -> int:
        files = fsspec.filesystem("memory")
        for key, content in keys.items():
            files.store[f"/store/{key}"] = _file(files, f"/store/{key}", content)
        try:
            fetch("memory://store", target)
        except InputError as error:
            print(f"expgen: {' '.join(str(error).split())!r}")
            return 2
        return 0

    outcome = run_forked(call, scratch)
    if flaw := flaw_in(outcome._replace(err="expgen: " + outcome.err, status=outcome.status)):
        return flaw
    outside = [path for path in scratch.rglob("*") if path.is_file() and target not in path.parents]
    return f"writes {outside[0].relative_to(scratch)}" if outside else ""


def _file(files: fsspec.AbstractFileSystem, path: str, content: bytes) -> object:
    from fsspec.implementations.memory import MemoryFile

    return MemoryFile(files, path, content)
