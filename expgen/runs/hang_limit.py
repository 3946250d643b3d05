"""HangLimit: end a worker process in which a game hangs.

A call into a game that never returns cannot be interrupted; only ending its process helps. So learners whose games may
hang train in worker processes, and a thread there measures each step of the work: one step of all games, or one
minibatch.
"""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
OnHang = Callable[[str, str], None]  # takes a one-line message and the stack trace of the hang


class HangLimit:
    """Ends this process if one step of the work takes longer than `seconds`; 0 is no limit, as a debugger needs."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.step: tuple[float, OnHang] | None = None  # start time and callback of the current step
        if seconds:
            threading.Thread(target=self._watch, args=(threading.get_ident(),), daemon=True).start()

    def limit(self, work: Generator[T, None, R], on_hang: OnHang) -> Generator[T, None, R]:
        """Run `work` with a limit on each step; on a hang, `on_hang` is called in the watching thread."""
        if not self.seconds:
            return (yield from work)
        while True:
            self.step = time.monotonic(), on_hang
            try:
                item = next(work)
            except StopIteration as finished:
                return finished.value
            finally:
                self.step = None
            yield item

    def _watch(self, thread: int) -> None:
        while True:
            time.sleep(min(1.0, self.seconds / 4))
            step = self.step
            if step is not None and time.monotonic() - step[0] > self.seconds:
                trace = "".join(traceback.format_stack(sys._current_frames()[thread]))
                step[1](f"made no progress for {self.seconds:g} s", trace)
                os._exit(1)
