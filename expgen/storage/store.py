"""Store: files below a URL, by name. What fails is tried again for a while; what does not answer is not waited for.

Nothing is asked of the storage but to write, read, list and delete whole files: no rename, no append, no lock.
"""

import os
import queue
import random
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from expgen.errors import FailedStorage, InputError
from expgen.storage.notice import Notice
from expgen.storage.place import open_url

PATIENCE_VARIABLE = "EXPGEN_STORAGE_SECONDS"
PATIENCE_SECONDS = 300.0  # for one operation, all its tries together
FIRST_WAIT, LONGEST_WAIT = 0.25, 15.0  # between two tries

Answer = TypeVar("Answer")


class StorageError(InputError):
    """The storage refuses, or does not answer."""


class StorageOutage(StorageError, FailedStorage):
    """It did so for as long as we are patient; another time it may not."""


class Store:
    """Reads and writes below `url`."""

    def __init__(self, url: str, patience: float | None = None) -> None:
        self.url, self.patience = url.rstrip("/"), patience_of_user() if patience is None else patience
        self.files, self.root = open_url(self.url)
        self.is_given_up = False

    def give_up(self) -> None:
        """Nobody waits for answers any more: what fails is not tried again, and nothing is said."""
        self.is_given_up = True

    def read(self, name: str) -> bytes:
        """FileNotFoundError where there is none of that name."""
        return self._insist(f"read {name}", lambda: self.files.cat_file(self._path(name)))

    def write(self, name: str, content: bytes) -> None:
        """The whole file; until it is whole, a reader may see a part of it where the storage is a plain disk."""

        def put() -> None:
            path = self._path(name)
            try:
                self.files.pipe_file(path, content)
            except FileNotFoundError:  # a disk wants folders first; a bucket is not ours to make
                if not self.files.exists(_top(path)):
                    raise
                self.files.makedirs(path.rpartition("/")[0], exist_ok=True)
                self.files.pipe_file(path, content)

        try:
            self._insist(f"write {name}", put)
        except FileNotFoundError as error:  # as of a bucket that does not exist
            raise self._refusal(f"write {name}", error) from None

    def names(self, folder: str) -> list[str]:
        """Of every file in `folder`, at any depth."""

        def find() -> list[str]:
            self.files.invalidate_cache()
            return self.files.find(self._path(folder))

        try:
            return sorted(path[len(self.root) :].lstrip("/") for path in self._insist("list", find))
        except FileNotFoundError:
            return []

    def folders(self, name: str = "") -> list[str]:
        """Names of what lies directly in the folder `name` and is a folder."""

        def look() -> list[dict[str, Any]]:
            self.files.invalidate_cache()
            return self.files.ls(self._path(name).rstrip("/"), detail=True)

        try:
            found = self._insist("list", look)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(entry["name"].rstrip("/").rpartition("/")[2] for entry in found if entry["type"] == "directory")

    def delete(self, names: Iterable[str]) -> None:
        """Those that are there."""
        for name in names:
            try:
                self._insist(f"delete {name}", lambda name=name: self.files.rm_file(self._path(name)))  # type: ignore[misc]
            except FileNotFoundError:
                continue

    def _path(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"

    def _insist(self, what: str, operation: Callable[[], Answer]) -> Answer:
        """The answer of `operation`, tried until patience ends."""
        end, wait = time.monotonic() + self.patience, FIRST_WAIT
        reason: Exception | None = None  # that the storage gave
        with Notice(self.url, what, self.patience, lambda: self.is_given_up) as notice:
            while True:
                try:
                    return _bounded(operation, max(0.0, end - time.monotonic()))
                except FileNotFoundError:
                    raise
                except Exception as error:  # every storage has errors of its own
                    reason = reason if reason and isinstance(error, TimeoutError) else error
                    if _is_final(error):
                        raise self._refusal(what, error) from None
                    if self.is_given_up or time.monotonic() + wait > end:
                        raise self._refusal(what, reason, StorageOutage) from None
                    notice.reason = _words(reason)
                time.sleep(wait * random.uniform(0.5, 1.0))  # so that a cluster's jobs do not all ask at once
                wait = min(2 * wait, LONGEST_WAIT)

    def _refusal(self, what: str, error: Exception, kind: type[StorageError] = StorageError) -> StorageError:
        return kind(f"cannot {what} at {self.url}: {_words(error)}; accepted: storage that lets us")


def patience_of_user() -> float:
    """Seconds that EXPGEN_STORAGE_SECONDS allows."""
    text = os.environ.get(PATIENCE_VARIABLE, str(PATIENCE_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise InputError(f"{PATIENCE_VARIABLE} is {text!r}; accepted: seconds")
    return seconds


def _words(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _top(path: str) -> str:
    """The bucket, or the first folder."""
    return path[: len(path) - len(path.lstrip("/"))] + path.lstrip("/").partition("/")[0]


def _is_final(error: Exception) -> bool:
    """Whether trying again is in vain: no right, no driver, no credentials."""
    return isinstance(error, PermissionError | ImportError | NotImplementedError | TypeError | AttributeError) or (
        "Credentials" in type(error).__name__
    )


def _bounded(operation: Callable[[], Answer], seconds: float) -> Answer:
    """TimeoutError after `seconds`; the operation is then left to itself, in a thread that keeps no process alive."""
    answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put((operation(), None))
        except BaseException as error:  # it is the caller's
            answers.put((None, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        answer, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer in {seconds:.0f} s") from None
    if error is not None:
        raise error
    return answer
