"""StopSignals: what Ctrl-C, SIGTERM and SIGHUP do to a command, so that none of them is lost.

An exception raised while a module is imported, an object deleted or C code calls back may be swallowed there. So a
signal that finds nothing to save exits on the spot, and one that unwinds sets a limit to how long that may take.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
UNWIND_SECONDS = 10.0  # after KeyboardInterrupt, within which the command must have ended

Reaction = Literal["ask", "unwind", "exit"]


class StopSignals:
    """How a command reacts to the next signal; each one makes the reaction to the next more abrupt.

    `ask`: `arrived` says so, and work that asks stops at its next checkpoint. `unwind`: KeyboardInterrupt. `exit`: the
    process ends. Only the main thread can handle signals; elsewhere this does nothing.
    """

    def __init__(
        self, reaction: Reaction = "ask", still_to_do: Callable[[], str] = lambda: "after the rollout under way"
    ) -> None:
        """`still_to_do` says, when asked to stop, what is finished and written before; it must not print."""
        self.reaction: Reaction = reaction
        self.still_to_do = still_to_do
        self.number: int | None = None
        self.before: dict[int, Any] = {}
        self.deadline: threading.Timer | None = None
        self.terminals = [handle for handle in (0, 1, 2) if os.isatty(handle)]

    def arrived(self) -> bool:
        return self.number is not None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.number = self.number or number
        if number == signal.SIGHUP:
            self._leave_terminals()
        match self.reaction:
            case "ask":
                self.reaction = "unwind"
                _say(f"expgen: stopping {self.still_to_do()}; again to stop at once")
            case "unwind":
                self.reaction = "exit"
                self.deadline = threading.Timer(UNWIND_SECONDS, self._exit)
                self.deadline.daemon = True
                self.deadline.start()
                raise KeyboardInterrupt
            case "exit":
                self._exit()

    def _exit(self) -> None:
        _say("expgen: interrupted")
        os._exit(128 + (self.number or 0))

    def _leave_terminals(self) -> None:
        """Where the terminal has been closed, printing to it would fail: what is still said goes nowhere."""
        for handle in self.terminals:
            if not os.isatty(handle):
                with open(os.devnull, "r+b", buffering=0) as nowhere:
                    os.dup2(nowhere.fileno(), handle)

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # as nohup asks
                    self.before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
        for number, handler in self.before.items():
            signal.signal(number, handler)


def _say(line: str) -> None:
    """Print to standard error, also in the middle of another print, which Python's own streams do not allow."""
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode())
