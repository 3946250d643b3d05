"""HangLimit: a game that hangs ends its own learner and nobody else's.

Nothing can interrupt a game that never returns but the end of its process. So work that may hang is done in worker
processes, by turns, and a thread beside it watches how long each turn takes: one step of all games, or one minibatch.
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
OnHang = Callable[[str, str], None]  # what to say of it in one line, and where it hangs


class HangLimit:
    """Ends this process where one turn takes longer than `seconds`; 0: never, as a debugger needs it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.turn: tuple[float, OnHang] | None = None  # when it began, whom to tell
        if seconds:
            threading.Thread(target=self._watch, args=(threading.get_ident(),), daemon=True).start()

    def on(self, work: Generator[T, None, R], on_hang: OnHang) -> Generator[T, None, R]:
        """`work`, whose every turn is limited; before the process ends `on_hang` is called, in another thread."""
        if not self.seconds:
            return (yield from work)
        while True:
            self.turn = time.monotonic(), on_hang
            try:
                item = next(work)
            except StopIteration as finished:
                return finished.value
            finally:
                self.turn = None
            yield item

    def _watch(self, thread: int) -> None:
        while True:
            time.sleep(min(1.0, self.seconds / 4))
            turn = self.turn
            if turn is not None and time.monotonic() - turn[0] > self.seconds:
                where = "".join(traceback.format_stack(sys._current_frames()[thread]))
                turn[1](f"made no progress for {self.seconds:g} s", where)
                os._exit(1)
