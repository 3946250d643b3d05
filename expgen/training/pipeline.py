"""Many learners side by side on one device, in one thread: no locks, no queues.

Learners are generators; each turn resumes one of them until it has started some work. While one learner's
minibatches occupy the device, the C threads step the others' games. They share the device, never data, and each is
strictly on-policy, so a learner's weights do not depend on who runs beside it. Few learners update at a time: those
that act are waited for by nobody else's minibatches then, and one whose memory keeps a corner of the device busy
leaves room for one more. Whoever waits for a permit falls behind, so that not all play, and then all update, at the
same time. A learner that fails, as by an error of its game, leaves the others alone.
"""

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from expgen.errors import StorageError, TakenOver
from expgen.training.learner import Diverged, Phase

REST_SECONDS = 1e-4  # of the host, when all learners wait for the device: a minibatch takes it twenty times as long


class Turn(NamedTuple):
    """A learner in the pipeline, and its life."""

    name: str
    life: Iterator[Phase]


class Permits(Protocol):
    """Who updates needs one; there are only so many."""

    def take(self) -> bool:
        """Whether there was one left."""

    def give_back(self) -> None: ...


class OwnPermits(threading.Semaphore):
    """Permits of the learners of one pipeline: so many as it is made with."""

    def take(self) -> bool:
        return self.acquire(blocking=False)

    def give_back(self) -> None:
        self.release()


def run_side_by_side(turns: Sequence[Turn], permits: Permits) -> dict[str, Exception]:
    """Take turns until every learner's life has ended; the errors of those that diverged or failed, by name.

    A run that cannot be saved, or that another process has taken over, ends for all of them.
    """
    waiting = dict.fromkeys(turns, Phase.COLLECT)
    errors: dict[str, Exception] = {}
    updating: set[Turn] = set()

    def finish_update(turn: Turn) -> None:
        if turn in updating:
            updating.remove(turn)
            permits.give_back()

    while waiting:
        has_worked = False
        for turn in list(waiting):
            if waiting[turn] is Phase.READY:
                if not permits.take():
                    continue
                updating.add(turn)
            try:
                phase = next(turn.life)
            except (StorageError, TakenOver):
                raise
            except (Exception, SystemExit) as end:  # whatever a game raises is its own learner's end
                if isinstance(end, SystemExit):
                    errors[turn.name] = RuntimeError(f"the game exited ({end})").with_traceback(end.__traceback__)
                elif not isinstance(end, StopIteration):
                    errors[turn.name] = end
                if isinstance(end, Diverged):
                    print(f"expgen: {end}", file=sys.stderr)
                del waiting[turn]
                finish_update(turn)
                continue
            if phase is Phase.COLLECT:
                finish_update(turn)
            has_worked = has_worked or phase is not Phase.WAIT
            waiting[turn] = phase
        if waiting and not has_worked:
            time.sleep(REST_SECONDS)
    return errors
