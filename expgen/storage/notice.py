"""Notice: who waits for storage that is away is told so, and that it goes on."""

import sys
import threading
from collections.abc import Callable
from types import TracebackType

TELL_SECONDS = 10.0  # of waiting, before it is said


class Notice:
    """A line on stderr once an operation takes long, because it fails again and again or does not return.

    Another one when it has succeeded after all. Nothing once nobody waits any more.
    """

    def __init__(self, url: str, what: str, patience: float, is_given_up: Callable[[], bool] = lambda: False) -> None:
        self.url, self.what, self.patience, self.is_given_up = url, what, patience, is_given_up
        self.reason = ""  # that the storage gave
        self.is_told = self.is_over = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(TELL_SECONDS, self._tell)
        self._timer.daemon = True

    def __enter__(self) -> "Notice":
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._timer.cancel()
        with self._lock:
            self.is_over = True
        if self.is_told and (kind is None or kind is FileNotFoundError):  # that too is an answer
            self._say(f"{self.url} answers again")

    def _tell(self) -> None:
        with self._lock:
            if self.is_over:
                return
            self.is_told = True
            wait = f"it is tried for {self.patience:.0f} s"
            if self.reason:
                self._say(f"cannot {self.what} at {self.url}: {self.reason}; {wait}")
            else:
                self._say(f"still waiting to {self.what} at {self.url}; {wait}")

    def _say(self, line: str) -> None:
        if not self.is_given_up():
            print(f"expgen: {line}", file=sys.stderr, flush=True)
