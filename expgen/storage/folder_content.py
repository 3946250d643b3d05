"""FolderContent: the files of a folder as a snapshot, read so that it never says more than it holds."""

import hashlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from expgen.storage.listing import Kept, object_name
from expgen.training.checkpoint import PART

WEIGHTS = "checkpoints"


class FolderContent:
    """Knows the checksums of files that have not changed since it last read them."""

    def __init__(self, folder: Path, leave_out: tuple[str, ...] = ()) -> None:
        self.folder, self.leave_out = folder, leave_out
        self._known: dict[str, tuple[tuple[int, int], str]] = {}  # files' times and sizes, and their checksums

    def names(self) -> Iterator[str]:
        """Of all files but those left out and those half written."""
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder)
            if name.parts[0] not in self.leave_out and not name.name.endswith(PART) and path.is_file():
                yield name.as_posix()

    def snapshot(self, there: set[str]) -> tuple[dict[str, Kept], dict[str, bytes]]:
        """The files here, and the content of those that are not there.

        What says how far things are is read first, then weights, then rows: so no snapshot says more than it holds,
        and metrics reach at least as far as the weights. A checkpoint may be replaced meanwhile; then all is read anew.
        """
        while True:
            files: dict[str, Kept] = {}
            contents: dict[str, bytes] = {}
            try:
                for name in sorted(self.names(), key=_turn):
                    files[name] = self.keep(name, there, contents)
            except FileNotFoundError:
                continue
            return files, contents

    def keep(self, name: str, there: set[str], contents: dict[str, bytes]) -> Kept:
        """One file as it is now; its content goes to `contents` where it is not `there`."""
        path = self.folder / name
        facts = path.stat()
        stamp, known = (facts.st_mtime_ns, facts.st_size), self._known.get(name)
        if known is not None and known[0] == stamp and object_name(name, known[1]) in there:
            return Kept(object_name(name, known[1]), known[1], facts.st_mtime)
        content = path.read_bytes()
        if path.suffix == ".csv":
            content = content[: content.rfind(b"\n") + 1]  # a row may be under way
        digest = hashlib.sha256(content).hexdigest()
        self._known[name] = stamp, digest
        kept = Kept(object_name(name, digest), digest, facts.st_mtime)
        if kept.object not in there:
            contents[kept.object] = content
        return kept


def is_weights(name: str) -> bool:
    """Whether it is a checkpoint, of a run or of a milestone in it."""
    return WEIGHTS in PurePosixPath(name).parts[:-1]


def _turn(name: str) -> tuple[int, str]:
    kinds = (name.endswith(".json"), is_weights(name))
    return kinds.index(True) if any(kinds) else len(kinds), name
