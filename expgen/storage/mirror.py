"""Mirror: a local folder and its snapshots at a URL, each of which is there whole or not at all.

No file at the URL is ever changed. An upload writes new files under names that carry their checksum, then a list of
the snapshot's files, then deletes what the list does not name: a process killed in between leaves the list before it
and every file of it. The name of a list also says who owns the URL. A later process takes over with a list of a higher
claim; a process that finds the list of another owner uploads no more.
"""

import hashlib
import json
import os
import re
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

from tenacity import RetryCallState, retry, retry_if_exception_type, stop_after_attempt

from expgen.errors import FailedStorage, InputError, TakenOver
from expgen.files import PART, check_name, join_inside, read_bytes, write_atomic
from expgen.storage.store import Store

LISTS, FILES = "lists", "files"  # folders at the URL
LIST_NAME = re.compile(rf"{LISTS}/\d{{6}}-\d{{9}}-\w+\.json", re.ASCII)  # claim, upload, owner
SHA256 = re.compile("[0-9a-f]{64}")
WEIGHTS, SKETCHED = ".safetensors", (".json", ".csv")  # suffixes; a sketch has the content of the latter alone
BUSY_SECONDS = 600.0  # after which an owner that has not uploaded may be dead


class Snapshot(NamedTuple):
    """A run at one moment."""

    is_open: bool  # its owner is still at work
    written: float
    files: dict[str, str]  # sha256 by name


EMPTY = Snapshot(False, 0.0, {})


def decode(content: bytes, url: str) -> Snapshot | None:
    """The snapshot of a list; None if it is incomplete since its writer was killed, InputError if it is not ours."""
    try:
        data = json.loads(content)
        files = {check_name(name): str(digest) for name, digest in data["files"].items()}
        if not all(map(SHA256.fullmatch, files.values())) or not 0 <= data["written"] < 2**33:
            raise ValueError("no checksums or no time")
        return Snapshot(bool(data["is_open"]), float(data["written"]), files)
    except (json.JSONDecodeError, RecursionError):
        return None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{url}/{LISTS} holds a list that this version of expgen did not write: {error}") from None


def object_name(name: str, digest: str) -> str:
    """What the file `name` with this content, and no other, is called at the URL."""
    return f"{FILES}/{digest[:16]}-{name.replace('/', '-')}"


def _lacks_files(state: RetryCallState) -> NoReturn:
    raise InputError(f"{state.args[0].store.url} lacks files that its list names: another program has changed it")


_is_gone = retry_if_exception_type(FileNotFoundError)
_reread = retry(retry=_is_gone, stop=stop_after_attempt(5), retry_error_callback=_lacks_files)  # a newer list came


class Mirror:
    """Downloads snapshots into `folder` and, once it owns the URL, uploads them."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.folder = store, folder
        self.owner, self.claims, self.uploads = uuid.uuid4().hex[:12], 0, 0
        self.last, self.is_taken_over = EMPTY, False  # that we uploaded; another process owns the URL now
        self.looked = float("-inf")  # when the URL was last downloaded
        self.downloaded: dict[str, str] = {}  # sha256 of what is here as it is there
        self.known: dict[tuple[str, int, int], str] = {}  # sha256 of files here by name, time and size

    @_reread
    def newest(self) -> Snapshot:
        """The newest complete snapshot; EMPTY if there is none."""
        snapshots = (decode(self.store.read(name), self.store.url) for name in self._lists())
        return next(filter(None, snapshots), EMPTY)

    @_reread
    def download(self, without_weights: bool = False) -> Snapshot:
        """Make the folder as in the newest snapshot; in a sketch, checkpoints and other large files are empty."""
        newest, self.looked = self.newest(), time.monotonic()
        for name, digest in newest.files.items() - self.downloaded.items():
            is_empty = without_weights and not name.endswith(SKETCHED)
            content = b"" if is_empty else self.store.read(object_name(name, digest))
            if not is_empty and hashlib.sha256(content).hexdigest() != digest:
                raise InputError(f"{self.store.url} is damaged: {name} has another checksum than its list says")
            path = join_inside(self.folder, name)
            write_atomic(path, content)
            os.utime(path, (newest.written, newest.written))
            self.downloaded[name] = digest
        for name in self.downloaded.keys() - newest.files.keys():
            join_inside(self.folder, name).unlink(missing_ok=True)
            del self.downloaded[name]
        return newest

    def claim(self) -> None:
        """Become the owner: uploads of earlier owners end with TakenOver."""
        claims = [int(name.removeprefix(f"{LISTS}/")[:6]) for name in self._lists()]
        files = self.newest().files  # after the lists: of two that claim at once, one finds the other's
        self.claims = max(claims, default=0) + 1
        self._publish(Snapshot(True, time.time(), files))

    def upload(self, is_open: bool = True) -> None:
        """Upload the folder as it is now; TakenOver if another process owns the URL."""
        self._check_owner()
        files, contents = self._read_folder(set(self.store.names(FILES)))
        if contents or (files, is_open) != (self.last.files, self.last.is_open):
            for name, content in contents.items():
                self.store.write(name, content)
            self._check_owner()
            self._publish(Snapshot(is_open, time.time(), files))

    def check_not_busy(self) -> None:
        """InputError if a process has uploaded in the last minutes and has not ended."""
        newest = self.newest()
        if newest.is_open and (ago := time.time() - newest.written) < BUSY_SECONDS:
            raise InputError(f"{self.store.url} is in use: a process uploaded to it {ago:.0f} s ago and has not ended")

    @retry(retry=_is_gone)  # a checkpoint was replaced meanwhile
    def _read_folder(self, stored: set[str]) -> tuple[dict[str, str], dict[str, bytes]]:
        """The files here with their checksums, and the contents of those that are not `stored` at the URL.

        What says how far the run is comes first, then weights, then rows: so a snapshot never claims more than it
        holds, and its metrics reach at least as far as its weights.
        """
        files, contents = {}, {}
        for path in sorted(self.folder.rglob("*"), key=lambda path: (path.suffix != ".json", path.suffix != WEIGHTS)):
            name = path.relative_to(self.folder).as_posix()
            if name.endswith(PART) or not path.is_file():
                continue
            facts = path.stat()
            version = name, facts.st_mtime_ns, facts.st_size
            digest = self.known.get(version)
            if digest is None or object_name(name, digest) not in stored:
                content = read_bytes(join_inside(self.folder, name))
                if path.suffix == ".csv":
                    content = content[: content.rfind(b"\n") + 1]  # a row may be half written
                digest = self.known[version] = hashlib.sha256(content).hexdigest()
                contents[object_name(name, digest)] = content
            files[name] = digest
        for name in self.last.files:
            if name.endswith(".json") and name not in files:  # which no run does
                raise FailedStorage(f"cannot upload {self.folder}: {name} was deleted")
        return files, {name: content for name, content in contents.items() if name not in stored}

    def _publish(self, snapshot: Snapshot) -> None:
        self.uploads += 1  # also where the write fails: a name is never used again
        listed = f"{LISTS}/{self.claims:06d}-{self.uploads:09d}-{self.owner}.json"
        self.store.write(listed, json.dumps(snapshot._asdict()).encode())
        self.last = snapshot
        self._check_owner()
        needed = {listed, *(object_name(name, digest) for name, digest in snapshot.files.items())}
        for name in {*self._lists(), *self.store.names(FILES)} - needed:
            self.store.delete(name)

    def _lists(self) -> list[str]:
        """Newest first, incomplete ones too."""
        return sorted(filter(LIST_NAME.fullmatch, self.store.names(LISTS)), reverse=True)

    def _check_owner(self) -> None:
        self.is_taken_over = not "".join(self._lists()[:1]).endswith(f"-{self.owner}.json")
        if self.is_taken_over:
            raise TakenOver(f"another process has taken over {self.store.url}")

    def stop_when_taken_over(self, should_stop: Callable[[], bool]) -> Callable[[], bool]:
        """`should_stop`, or another process owns the URL now."""
        return lambda: self.is_taken_over or should_stop()
