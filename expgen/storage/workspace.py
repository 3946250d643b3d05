"""workspace: a folder to work in, pushed to its URL as the work gets on."""

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from expgen.errors import FailedStorage, InputError, TakenOver
from expgen.storage.mirror import Mirror
from expgen.storage.scratch import keep_scratch, scratch_folder
from expgen.storage.store import StorageError, Store

LOOK_SECONDS = 1.0  # between two looks for a new checkpoint
ROWS_SECONDS = 30.0  # after which rows are pushed without one


class Workspace:
    """The folder, and whether the place at the URL is still ours."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror, self.path, self.url = mirror, mirror.folder, mirror.store.url
        self.loss: TakenOver | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True, name="expgen-push")

    def stop_when_lost(self, should_stop: Callable[[], bool]) -> Callable[[], bool]:
        """`should_stop`, or another process has taken over."""
        return lambda: self.loss is not None or should_stop()

    def _follow(self) -> None:
        """Push while the work goes on: it never waits for storage, and an outage costs it nothing but safety."""
        pushed = float("-inf")
        while not self._ending.wait(LOOK_SECONDS):
            if self.mirror.has_new_weights() or time.monotonic() - pushed > ROWS_SECONDS:
                try:
                    self.mirror.push()
                except TakenOver as loss:
                    self.loss = loss
                    return
                except InputError as error:
                    if self._ending.is_set():  # whoever ends it tells what it lacks
                        return
                    print(f"expgen: {error}; the work goes on, this is tried again", file=sys.stderr, flush=True)
                pushed = time.monotonic()

    def begin(self) -> None:
        self._thread.start()

    def give_up(self) -> None:
        """The storage is away and what lies here is not worth waiting for it: push no more, at the end neither."""
        self.mirror.store.give_up()
        self._ending.set()

    def end(self) -> None:
        """Whatever is not there yet; raises where it can not be brought there."""
        self._ending.set()
        if self.mirror.store.is_given_up:
            return
        self._thread.join(2 * self.mirror.store.patience)
        if self.loss is not None:
            raise self.loss
        if self._thread.is_alive():
            raise StorageError(f"{self.url} does not answer; accepted: storage that does")
        self.mirror.push(is_open=False)


@contextlib.contextmanager
def workspace(url: str, folder: Path | None = None, leave_out: tuple[str, ...] = ()) -> Iterator[Workspace]:
    """Take over what is at `url`, bring it here, push while the work goes on and at its end, however it ends."""
    space = Workspace(Mirror(Store(url), folder or scratch_folder(), leave_out))
    space.mirror.claim()  # before what it goes on from is read
    space.mirror.pull()
    space.begin()
    try:
        with speaking_of(url, space.path):
            yield space
    except Exception:
        try:
            space.end()
        except TakenOver:
            pass  # the first error is the one to tell
        except InputError as lack:
            keep_scratch()
            print(f"expgen: {lack}; {_kept(space)}", file=sys.stderr, flush=True)
        raise
    try:
        space.end()
    except InputError as error:
        keep_scratch()
        raise FailedStorage(f"{error}; {_kept(space)}") from None


def _kept(space: Workspace) -> str:
    return f"what it lacks is kept in {space.path} on {socket.gethostname()}"


@contextlib.contextmanager
def speaking_of(url: str, folder: Path) -> Iterator[None]:
    """Bad input is told by the name that the user knows."""
    try:
        yield
    except InputError as error:
        raise type(error)(str(error).replace(str(folder), url)) from None
