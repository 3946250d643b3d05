"""Mirror: a local folder and its snapshots at a URL. Uploads of snapshots are atomic.

No file at the URL is ever changed. An upload writes new files under names that contain their checksum, then a list of
the snapshot's files, then deletes files that are not in the list: a process killed in between leaves the previous list
and all its files. The name of a list contains the owner of the URL. A newer process takes ownership with a list of a
higher claim number; a process that finds a list of another owner stops uploading.
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
WEIGHTS = ".safetensors"
SMALL_FILES = (".json", ".csv")  # suffixes of the files that a download without weights reads
BUSY_SECONDS = 600.0  # after its last upload, an owner counts as alive for this long


class Snapshot(NamedTuple):
    """The files of a run at one moment."""

    is_open: bool  # the owner is still working
    written: float  # Unix time
    files: dict[str, str]  # name → sha256


EMPTY = Snapshot(False, 0.0, {})


def decode(content: bytes, url: str) -> Snapshot | None:
    """Parse a list; return None if it is incomplete (its writer was killed); raise InputError on a wrong format."""
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
    """Return the name at the URL of the file `name` with the checksum `digest`."""
    return f"{FILES}/{digest[:16]}-{name.replace('/', '-')}"


def _lacks_files(state: RetryCallState) -> NoReturn:
    raise InputError(f"{state.args[0].store.url} lacks files that its list names: another program has changed it")


_if_deleted = retry_if_exception_type(FileNotFoundError)
# A newer upload may delete the files of the list that is being read.
_retry_with_newest_list = retry(retry=_if_deleted, stop=stop_after_attempt(5), retry_error_callback=_lacks_files)


class Mirror:
    """Downloads snapshots into `folder` and, once it owns the URL, uploads them."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.folder = store, folder
        self.owner, self.claims, self.uploads = uuid.uuid4().hex[:12], 0, 0
        self.last = EMPTY  # the last snapshot that this process uploaded
        self.is_taken_over = False  # another process owns the URL
        self.download_time = float("-inf")
        self.downloaded: dict[str, str] = {}  # name → sha256 of downloaded files
        self.known: dict[tuple[str, int, int], str] = {}  # name, mtime, size → sha256 of local files

    @_retry_with_newest_list
    def newest(self) -> Snapshot:
        """Return the newest complete snapshot; EMPTY if there is none."""
        snapshots = (decode(self.store.read(name), self.store.url) for name in self._lists())
        return next(filter(None, snapshots), EMPTY)

    @_retry_with_newest_list
    def download(self, without_weights: bool = False) -> Snapshot:
        """Update the folder to the newest snapshot; `without_weights`, files other than JSON and CSV are empty."""
        newest, self.download_time = self.newest(), time.monotonic()
        for name, digest in newest.files.items() - self.downloaded.items():
            is_empty = without_weights and not name.endswith(SMALL_FILES)
            content = b"" if is_empty else self.store.read(object_name(name, digest))
            if not is_empty and hashlib.sha256(content).hexdigest() != digest:
                raise InputError(f"{self.store.url} is damaged: the checksum of {name} differs from its list")
            path = join_inside(self.folder, name)
            write_atomic(path, content)
            os.utime(path, (newest.written, newest.written))
            self.downloaded[name] = digest
        for name in self.downloaded.keys() - newest.files.keys():
            join_inside(self.folder, name).unlink(missing_ok=True)
            del self.downloaded[name]
        return newest

    def claim(self) -> None:
        """Take ownership of the URL: uploads of earlier owners raise TakenOver."""
        claims = [int(name.removeprefix(f"{LISTS}/")[:6]) for name in self._lists()]
        files = self.newest().files  # read after the lists: of two concurrent claims, one sees the other
        self.claims = max(claims, default=0) + 1
        self._publish(Snapshot(True, time.time(), files))

    def upload(self, is_open: bool = True) -> None:
        """Upload a snapshot of the folder; raise TakenOver if another process owns the URL."""
        self._check_owner()
        files, contents = self._read_folder(set(self.store.names(FILES)))
        if contents or (files, is_open) != (self.last.files, self.last.is_open):
            for name, content in contents.items():
                self.store.write(name, content)
            self._check_owner()
            self._publish(Snapshot(is_open, time.time(), files))

    def check_not_busy(self) -> None:
        """Raise InputError if a process has uploaded in the last BUSY_SECONDS and has not ended."""
        newest = self.newest()
        if newest.is_open and (ago := time.time() - newest.written) < BUSY_SECONDS:
            raise InputError(f"{self.store.url} is in use: a process uploaded to it {ago:.0f} s ago and has not ended")

    @retry(retry=_if_deleted)  # a checkpoint was replaced during the read
    def _read_folder(self, stored: set[str]) -> tuple[dict[str, str], dict[str, bytes]]:
        """Return the checksums of all files, and the contents of those that are not `stored` at the URL.

        JSON files, which record progress, are read first, then weights, then rows: a snapshot never claims more steps
        than it holds, and its metrics reach at least as far as its weights.
        """
        files, contents = {}, {}
        for path in sorted(self.folder.rglob("*"), key=lambda path: (path.suffix != ".json", path.suffix != WEIGHTS)):
            name = path.relative_to(self.folder).as_posix()
            if name.endswith(PART) or not path.is_file():
                continue
            info = path.stat()
            version = name, info.st_mtime_ns, info.st_size
            digest = self.known.get(version)
            if digest is None or object_name(name, digest) not in stored:
                content = read_bytes(join_inside(self.folder, name))
                if path.suffix == ".csv":
                    content = content[: content.rfind(b"\n") + 1]  # the last row may be incomplete
                digest = self.known[version] = hashlib.sha256(content).hexdigest()
                contents[object_name(name, digest)] = content
            files[name] = digest
        for name in self.last.files:
            if name.endswith(".json") and name not in files:  # a run never deletes a JSON file
                raise FailedStorage(f"cannot upload {self.folder}: {name} was deleted")
        return files, {name: content for name, content in contents.items() if name not in stored}

    def _publish(self, snapshot: Snapshot) -> None:
        self.uploads += 1  # even if the write fails: a name is used once
        listed = f"{LISTS}/{self.claims:06d}-{self.uploads:09d}-{self.owner}.json"
        self.store.write(listed, json.dumps(snapshot._asdict()).encode())
        self.last = snapshot
        self._check_owner()
        needed = {listed, *(object_name(name, digest) for name, digest in snapshot.files.items())}
        for name in {*self._lists(), *self.store.names(FILES)} - needed:
            self.store.delete(name)

    def _lists(self) -> list[str]:
        """Return the names of all lists, newest first, incomplete ones too."""
        return sorted(filter(LIST_NAME.fullmatch, self.store.names(LISTS)), reverse=True)

    def _check_owner(self) -> None:
        self.is_taken_over = not "".join(self._lists()[:1]).endswith(f"-{self.owner}.json")
        if self.is_taken_over:
            raise TakenOver(f"another process has taken over {self.store.url}")

    def stop_when_taken_over(self, should_stop: Callable[[], bool]) -> Callable[[], bool]:
        """Return a function: `should_stop()`, or whether another process owns the URL."""
        return lambda: self.is_taken_over or should_stop()
