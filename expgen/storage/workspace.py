"""workspace: a local folder to work in, uploaded to a URL while the work goes on."""

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from expgen.errors import FailedStorage, InputError, TakenOver
from expgen.storage.mirror import WEIGHTS, Mirror
from expgen.storage.scratch import keep_scratch, scratch_folder
from expgen.storage.store import StorageOutage, Store

LOOK_SECONDS = 1.0  # between two looks for a new checkpoint
ROWS_SECONDS = 30.0  # after which rows are uploaded without one


class Workspace:
    """The folder `path`, and a thread that uploads it. Training never waits for the storage."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror, self.path = mirror, mirror.folder
        self.taken_over: TakenOver | None = None
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._upload_often, daemon=True, name="expgen-upload")

    def stop_when_taken_over(self, should_stop: Callable[[], bool]) -> Callable[[], bool]:
        """`should_stop`, or another process owns the URL now."""
        return lambda: self.taken_over is not None or should_stop()

    def _upload_often(self) -> None:
        weights: set[Path] = set()
        uploaded = float("-inf")
        while not self.ending.wait(LOOK_SECONDS):
            found = set(self.path.rglob(f"*{WEIGHTS}"))
            if found <= weights and time.monotonic() - uploaded < ROWS_SECONDS:
                continue
            try:
                self.mirror.upload()
                weights = found
            except TakenOver as error:
                self.taken_over = error
                return
            except InputError as error:
                if not self.ending.is_set():  # else the last upload reports it
                    print(f"expgen: {error}; the work goes on, the upload is retried", file=sys.stderr, flush=True)
            uploaded = time.monotonic()

    def finish(self) -> None:
        """Upload what is not there yet; FailedStorage, and the folder is kept, if that fails."""
        self.ending.set()
        self.thread.join()
        if self.taken_over is not None:
            raise self.taken_over
        try:
            self.mirror.upload(is_open=False)
        except InputError as error:
            keep_scratch()
            where = f"{self.path} on {socket.gethostname()}"
            raise FailedStorage(f"{error}; what could not be uploaded is kept in {where}") from None


@contextlib.contextmanager
def workspace(url: str, folder: Path | None = None, leave_out: tuple[str, ...] = ()) -> Iterator[Workspace]:
    """Own `url`, download it to `folder` (default: a scratch folder), upload during the work and at its end.

    Names in `leave_out` are not uploaded. Work that ends with a StorageOutage does not wait for the storage again.
    """
    space = Workspace(Mirror(Store(url), folder or scratch_folder(), leave_out))
    space.path.mkdir(parents=True, exist_ok=True)
    space.mirror.claim()  # before what it resumes from is read
    space.mirror.download()
    space.thread.start()
    try:
        with naming(url, space.path):
            yield space
    except StorageOutage:
        space.mirror.store.is_given_up.set()
        space.ending.set()
        raise
    except Exception:
        try:
            space.finish()
        except TakenOver:
            pass  # the first error is the one to report
        except InputError as error:
            print(f"expgen: {error}", file=sys.stderr, flush=True)
        raise
    space.finish()


@contextlib.contextmanager
def naming(url: str, folder: Path) -> Iterator[None]:
    """Errors about `folder` name the URL, which the user knows."""
    try:
        yield
    except InputError as error:
        raise type(error)(str(error).replace(str(folder), url)) from None
