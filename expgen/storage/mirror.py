"""Mirror: a folder here and its twin at a URL, brought over as snapshots that are there whole or not at all.

At the URL no file is ever changed. A push writes what is new under names that carry their own checksum, then a list of
all files that count, and at last deletes what the list no longer names: who dies anywhere in between leaves the list
before it, with every file that it names. A list also says who wrote it. Who comes later takes over, with a list of a
higher sitting; who finds a list of another's writes no more.
"""

import hashlib
import json
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from expgen.errors import InputError
from expgen.storage.store import Store
from expgen.training.checkpoint import PART, write_whole

FORMAT = "expgen-list-1"
LISTS, FILES = "lists", "files"
SITTING_DIGITS = 6
LIST_NAME = re.compile(rf"{LISTS}/\d{{{SITTING_DIGITS}}}-\d{{9}}-\w+\.json")
WEIGHTS, EVENTS = "checkpoints", "tensorboard"
BUSY_SECONDS = 600.0  # without a push, a writer may be dead
READS = 5  # of a snapshot that is replaced while it is read


class TakenOver(RuntimeError):
    """Another process has begun to work on the run."""


class Kept(NamedTuple):
    """One file of a snapshot."""

    object: str  # its name at the URL
    sha256: str
    modified: float


class Listing(NamedTuple):
    """A snapshot: which files count, by their names here."""

    sitting: int
    push: int
    writer: str
    is_open: bool  # its writer is at work
    written: float
    files: dict[str, Kept]

    @property
    def name(self) -> str:
        return f"{LISTS}/{self.sitting:0{SITTING_DIGITS}d}-{self.push:09d}-{self.writer}.json"


class Mirror:
    """Pulls snapshots into `folder` and, once it has claimed the place, pushes the folder as snapshots."""

    def __init__(self, store: Store, folder: Path, leave_out: tuple[str, ...] = ()) -> None:
        self.store, self.folder, self.leave_out = store, folder, leave_out
        self.writer = uuid.uuid4().hex[:12]
        self.last: Listing | None = None  # that we wrote
        self.pulled: dict[str, str] = {}  # checksums of what lies here as it lies there
        self._known: dict[str, tuple[tuple[int, int], str]] = {}  # files' times and sizes, and their checksums

    def newest(self) -> Listing | None:
        """The newest list that is whole; None where there is none."""
        names = self._lists()
        for _ in range(READS):
            try:
                wholes = (whole for name in names if (whole := _parse(self.store.read(name), self.store.url)))
                return next(wholes, None)
            except FileNotFoundError:  # a newer one has replaced it
                names = self._lists()
        raise InputError(f"{self.store.url} changes faster than it can be read; accepted: one writer")

    def pull(self, is_sketch: bool = False) -> Listing | None:
        """Make the folder what the newest list says; the list, or None where there is none.

        A sketch tells how far a run is: its checkpoints have names and no content.
        """
        for _ in range(READS):
            newest = self.newest()
            if newest is None:
                return None
            try:
                for name, kept in newest.files.items():
                    if not (is_sketch and name.startswith(f"{EVENTS}/")):
                        self._fetch(name, kept, is_sketch and _is_weights(name))
            except FileNotFoundError:
                continue  # a newer list has replaced this one
            for name in set(self.pulled) - set(newest.files):
                (self.folder / name).unlink(missing_ok=True)
                del self.pulled[name]
            return newest
        raise InputError(f"{self.store.url} has lost files that it lists; accepted: the whole of what expgen wrote")

    def _fetch(self, name: str, kept: Kept, is_empty: bool) -> None:
        if self.pulled.get(name) == kept.sha256:
            return
        content = b"" if is_empty else self.store.read(kept.object)
        if not is_empty and hashlib.sha256(content).hexdigest() != kept.sha256:
            raise InputError(f"{self.store.url}/{kept.object} is damaged; accepted: a file that expgen wrote")
        path = self.folder / name
        write_whole(path, content)
        os.utime(path, (kept.modified, kept.modified))
        self.pulled[name] = kept.sha256

    def claim(self) -> None:
        """Take the place over: from now on another's pushes end."""
        sittings = [int(name.removeprefix(f"{LISTS}/")[:SITTING_DIGITS]) for name in self._lists()]  # torn ones too
        newest = self.newest()  # looked for later: who claims meanwhile has the same number, and one of us finds out
        files = newest.files if newest else {}
        self._publish(Listing(max(sittings, default=0) + 1, 0, self.writer, True, time.time(), files))

    def push(self, is_open: bool = True) -> None:
        """The folder as it is now; TakenOver where another has claimed the place."""
        assert self.last is not None, "claim first"
        self._check_ours()
        files, contents = self._snapshot(set(self.store.names(FILES)))
        if (files, is_open) == (self.last.files, self.last.is_open) and not contents:
            return
        for name, content in contents.items():
            self.store.write(name, content)
        self._check_ours()
        self._publish(self.last._replace(push=self.last.push + 1, is_open=is_open, written=time.time(), files=files))

    def amend(self, name: str, change: Callable[[Path], None]) -> None:
        """Change one file and bring it back, with the others as they are."""
        self.claim()
        assert self.last is not None
        if name in self.last.files:
            self._fetch(name, self.last.files[name], is_empty=False)
        change(self.folder / name)
        contents: dict[str, bytes] = {}
        files = {**self.last.files, name: self._keep(name, set(), contents)}
        for object_name, content in contents.items():
            self.store.write(object_name, content)
        self._check_ours()
        self._publish(self.last._replace(push=1, is_open=False, written=time.time(), files=files))

    def refuse_if_busy(self) -> None:
        """An InputError where another process is at work there, or was a few minutes ago and has not said goodbye."""
        newest = self.newest()
        if newest is not None and newest.is_open and time.time() - newest.written < BUSY_SECONDS:
            ago = time.time() - newest.written
            raise InputError(f"{self.store.url} is being written, last {ago:.0f} s ago; accepted: when that has ended")

    def _publish(self, listing: Listing) -> None:
        self.store.write(listing.name, _text(listing))
        self.last = listing
        self._check_ours()
        named = {listing.name, *(kept.object for kept in listing.files.values())}
        self.store.delete(name for name in (*self._lists(), *self.store.names(FILES)) if name not in named)

    def _lists(self) -> list[str]:
        """Newest first."""
        return sorted((name for name in self.store.names(LISTS) if LIST_NAME.fullmatch(name)), reverse=True)

    def _check_ours(self) -> None:
        if self.last is None or self._lists()[:1] != [self.last.name]:
            raise TakenOver(f"another process has taken over {self.store.url}")

    def has_new_weights(self) -> bool:
        """Whether there are checkpoints here that the last push did not bring."""
        names = {name for name in self._names() if _is_weights(name)}
        return self.last is None or not names <= set(self.last.files)

    def _snapshot(self, there: set[str]) -> tuple[dict[str, Kept], dict[str, bytes]]:
        """The files here, and the content of those that are not there.

        What says how far things are is read first, then weights, then rows: so no snapshot says more than it holds,
        and metrics reach at least as far as the weights. A checkpoint may be replaced meanwhile; then all is read anew.
        """
        while True:
            files: dict[str, Kept] = {}
            contents: dict[str, bytes] = {}
            try:
                for name in sorted(self._names(), key=_turn):
                    files[name] = self._keep(name, there, contents)
            except FileNotFoundError:
                continue
            return files, contents

    def _keep(self, name: str, there: set[str], contents: dict[str, bytes]) -> Kept:
        path = self.folder / name
        facts = path.stat()
        stamp, known = (facts.st_mtime_ns, facts.st_size), self._known.get(name)
        if known is not None and known[0] == stamp and _object(name, known[1]) in there:
            return Kept(_object(name, known[1]), known[1], facts.st_mtime)
        content = path.read_bytes()
        if path.suffix == ".csv":
            content = content[: content.rfind(b"\n") + 1]  # a row may be under way
        digest = hashlib.sha256(content).hexdigest()
        self._known[name] = stamp, digest
        kept = Kept(_object(name, digest), digest, facts.st_mtime)
        if kept.object not in there:
            contents[kept.object] = content
        return kept

    def _names(self) -> Iterator[str]:
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder)
            if name.parts[0] not in self.leave_out and not name.name.endswith(PART) and path.is_file():
                yield name.as_posix()


def _is_weights(name: str) -> bool:
    """Of a run, or of a milestone in it."""
    return WEIGHTS in PurePosixPath(name).parts[:-1]


def _turn(name: str) -> tuple[int, str]:
    kinds = (name.endswith(".json"), _is_weights(name))
    return kinds.index(True) if any(kinds) else len(kinds), name


def _object(name: str, digest: str) -> str:
    path = PurePosixPath(name)
    return f"{FILES}/{path.with_name(f'{path.stem}.{digest[:16]}{path.suffix}')}"


def _text(listing: Listing) -> bytes:
    body = json.dumps(listing._asdict())
    return json.dumps({"format": FORMAT, "sha256": _digest(body), "body": body}).encode()


def _parse(content: bytes, url: str) -> Listing | None:
    """None where it is not whole, since its writer died; InputError where it is whole but not ours."""
    try:
        outer = json.loads(content)
    except ValueError:
        return None
    if not isinstance(outer, dict) or _digest(str(outer.get("body"))) != outer.get("sha256"):
        return None
    try:
        if outer["format"] != FORMAT:
            raise ValueError(outer["format"])
        body: Mapping[str, Any] = json.loads(outer["body"])
        files = {
            _inside(name): Kept(_inside(key), str(sha256), float(at))
            for name, (key, sha256, at) in body["files"].items()
        }
        return Listing(**{**body, "files": files})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{url}/{LISTS} holds a list that is none of ours ({error}); accepted: expgen's") from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _inside(name: str) -> str:
    """A name that leads nowhere but below its folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError(name)
    return name
