"""StopSignals: Ctrl-C and SIGTERM as a question that work asks between two rollouts."""

import signal
import sys
from types import FrameType
from typing import Any


class StopSignals:
    """Ctrl-C and SIGTERM ask for a stop at the next checkpoint; a second one stops at once."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.before: dict[int, Any] = {}

    def arrived(self) -> bool:
        return self.number is not None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None:
            raise KeyboardInterrupt
        self.number = number
        print("expgen: stopping after the rollout under way; again to stop at once", file=sys.stderr)

    def __enter__(self) -> "StopSignals":
        for number in (signal.SIGINT, signal.SIGTERM):
            self.before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
