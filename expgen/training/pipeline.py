"""Train many learners on one device by resuming their generators in turn, in one thread: no locks, no queues.

While one learner's minibatches occupy the device, the C threads step the other learners' games. Learners share the
device but no data, and each is strictly on-policy, so a learner's weights do not depend on the others.

A learner needs a permit to update. With few permits, most learners collect while a few update: acting does not queue
behind many learners' minibatches, and learners that wait for a permit fall behind, so they do not all collect and then
all update at the same time. A GPU has two permits, because a recurrent update leaves most of the GPU idle.

If one learner fails, for example by an error in its environment, the others continue.
"""

import threading
import time
from collections.abc import Hashable, Iterator, Mapping
from typing import Protocol, TypeVar

from expgen.errors import StorageError, TakenOver
from expgen.text import notify
from expgen.training.learner import Diverged, Phase

IDLE_SECONDS = 1e-4  # sleep when all learners wait for the device; about a twentieth of a minibatch
Key = TypeVar("Key", bound=Hashable)


class Permits(Protocol):
    """A limited number of permits to update."""

    def try_acquire(self) -> bool:
        """Take a permit if one is free; return whether it was."""

    def release(self) -> None: ...


class LocalPermits(threading.Semaphore):
    """Permits for the learners of one pipeline."""

    def try_acquire(self) -> bool:
        return self.acquire(blocking=False)


def run_pipeline(learners: Mapping[Key, Iterator[Phase]], permits: Permits) -> dict[Key, Exception]:
    """Resume the generators in turn until all have ended; return the errors of those that diverged or failed.

    A StorageError or TakenOver concerns the whole run and is raised at once.
    """
    phases = dict.fromkeys(learners, Phase.COLLECT)  # what each unfinished learner does next
    errors: dict[Key, Exception] = {}
    updating: set[Key] = set()

    def finish_update(key: Key) -> None:
        if key in updating:
            updating.remove(key)
            permits.release()

    while phases:
        is_idle = True
        for key in list(phases):
            if phases[key] is Phase.READY:
                if not permits.try_acquire():
                    continue
                updating.add(key)
            try:
                phases[key] = next(learners[key])
            except (StorageError, TakenOver):
                raise
            except (Exception, SystemExit) as end:  # an environment may raise anything
                if isinstance(end, SystemExit):
                    errors[key] = RuntimeError(f"the game exited ({end})").with_traceback(end.__traceback__)
                elif not isinstance(end, StopIteration):
                    errors[key] = end
                if isinstance(end, Diverged):
                    notify(f"expgen: {end}")
                del phases[key]
                finish_update(key)
                continue
            if phases[key] is Phase.COLLECT:
                finish_update(key)
            if phases[key] is not Phase.WAIT:
                is_idle = False
        if phases and is_idle:
            time.sleep(IDLE_SECONDS)
    return errors
