"""Mirror: a folder here and its twin at a URL, brought over as snapshots that are there whole or not at all.

At the URL no file is ever changed. A push writes what is new under names that carry their own checksum, then a list of
all files that count, and at last deletes what the list no longer names: who dies anywhere in between leaves the list
before it, with every file that it names. A list also says who wrote it. Who comes later takes over, with a list of a
higher sitting; who finds a list of another's writes no more.
"""

import hashlib
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from expgen.errors import InputError, TakenOver
from expgen.storage.folder_content import FolderContent, is_weights
from expgen.storage.listing import FILES, LIST_NAME, LISTS, Kept, Listing, parse, sitting_of, text_of
from expgen.storage.store import Store
from expgen.training.checkpoint import write_whole

EVENTS = "tensorboard"
BUSY_SECONDS = 600.0  # without a push, a writer may be dead
READS = 5  # of a snapshot that is replaced while it is read


class Mirror:
    """Pulls snapshots into `folder` and, once it has claimed the place, pushes the folder as snapshots."""

    def __init__(self, store: Store, folder: Path, leave_out: tuple[str, ...] = ()) -> None:
        self.store, self.folder = store, folder
        self.content = FolderContent(folder, leave_out)
        self.writer = uuid.uuid4().hex[:12]
        self.last: Listing | None = None  # that we wrote
        self.pulled: dict[str, str] = {}  # checksums of what lies here as it lies there

    def newest(self) -> Listing | None:
        """The newest list that is whole; None where there is none."""
        names = self._lists()
        for _ in range(READS):
            try:
                wholes = (whole for name in names if (whole := parse(self.store.read(name), self.store.url)))
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
                        self._fetch(name, kept, is_sketch and is_weights(name))
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
        sittings = [sitting_of(name) for name in self._lists()]  # torn ones too
        newest = self.newest()  # looked for later: who claims meanwhile has the same number, and one of us finds out
        files = newest.files if newest else {}
        self._publish(Listing(max(sittings, default=0) + 1, 0, self.writer, True, time.time(), files))

    def push(self, is_open: bool = True) -> None:
        """The folder as it is now; TakenOver where another has claimed the place."""
        assert self.last is not None, "claim first"
        self._check_ours()
        files, contents = self.content.snapshot(set(self.store.names(FILES)))
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
        try:
            change(self.folder / name)
        except InputError:
            self._publish(self.last._replace(push=1, is_open=False, written=time.time()))  # nobody waits for us
            raise
        contents: dict[str, bytes] = {}
        files = {**self.last.files, name: self.content.keep(name, set(), contents)}
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
        self.store.write(listing.name, text_of(listing))
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
        names = {name for name in self.content.names() if is_weights(name)}
        return self.last is None or not names <= set(self.last.files)
