"""Notice: who waits for storage that is away is told so, and that it goes on."""

import sys
import threading
from types import TracebackType

TELL_SECONDS = 10.0  # of waiting, before it is said


class Notice:
    """A line on stderr once an operation takes long, because it fails again and again or does not return.

    Another one when it has succeeded after all.
    """

    def __init__(self, url: str, what: str, patience: float) -> None:
        self.url, self.what, self.patience = url, what, patience
        self.reason = ""  # that the storage gave
        self.is_told = False
        self._timer = threading.Timer(TELL_SECONDS, self._tell)
        self._timer.daemon = True

    def __enter__(self) -> "Notice":
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._timer.cancel()
        if self.is_told and (kind is None or kind is FileNotFoundError):  # that too is an answer
            _say(f"{self.url} answers again")

    def _tell(self) -> None:
        self.is_told = True
        why = self.reason or f"no answer in {TELL_SECONDS:.0f} s"
        _say(f"cannot {self.what} at {self.url}: {why}; it is tried for {self.patience:.0f} s")


def _say(line: str) -> None:
    print(f"expgen: {line}", file=sys.stderr, flush=True)
