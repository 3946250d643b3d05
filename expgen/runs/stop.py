"""StopSignals: how a command reacts to Ctrl-C, SIGTERM and SIGHUP.

KeyboardInterrupt may be swallowed if it is raised during an import, in a destructor or in a callback from C. So where
there is nothing to save, a signal ends the process directly, and after KeyboardInterrupt a timer ends it.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SAME_SECONDS = 1.0  # signals in this time count as one: `timeout` sends its signal to the command and to its group
UNWIND_SECONDS = 10.0  # after KeyboardInterrupt, before the process is ended

Reaction = Literal["ask", "unwind", "exit"]


class StopSignals:
    """Signal handlers of a command. Each signal escalates the reaction to the next: `ask`, `unwind`, `exit`.

    `ask`: `arrived` returns True from now on; the work checks it and stops. `unwind`: raise KeyboardInterrupt. `exit`:
    end the process. Only the main thread can handle signals; in other threads this does nothing.
    """

    def __init__(
        self, reaction: Reaction = "ask", when_stopping: Callable[[], str] = lambda: "after the current rollout"
    ) -> None:
        """`when_stopping` returns when the command will stop, for the message; it must not print."""
        self.reaction: Reaction = reaction
        self.when_stopping = when_stopping
        self.number: int | None = None
        self.last = float("-inf")  # time of the last signal that counted
        self.before: dict[int, Any] = {}
        self.deadline: threading.Timer | None = None
        self.terminals = [handle for handle in (0, 1, 2) if os.isatty(handle)]

    def arrived(self) -> bool:
        return self.number is not None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.number = self.number or number
        if number == signal.SIGHUP:
            self._leave_terminals()
        now = time.monotonic()
        if now - self.last < SAME_SECONDS:
            return
        self.last = now
        match self.reaction:
            case "ask":
                self.reaction = "unwind"
                _write_line(f"expgen: stopping {self.when_stopping()}; a second signal stops at once")
            case "unwind":
                self.reaction = "exit"
                self.deadline = threading.Timer(UNWIND_SECONDS, self._exit)
                self.deadline.daemon = True
                self.deadline.start()
                raise KeyboardInterrupt
            case "exit":
                self._exit()

    def _exit(self) -> None:
        _write_line("expgen: interrupted")
        os._exit(128 + (self.number or 0))

    def _leave_terminals(self) -> None:
        """Redirect the standard streams of a closed terminal to /dev/null, since printing to it would fail."""
        for handle in self.terminals:
            if not os.isatty(handle):
                with open(os.devnull, "r+b", buffering=0) as null:
                    os.dup2(null.fileno(), handle)

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores it
                    self.before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
        for number, handler in self.before.items():
            signal.signal(number, handler)


def _write_line(line: str) -> None:
    """Write to standard error; unlike `print`, this may interrupt another print."""
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode())
