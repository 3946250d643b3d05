"""RayEngine: tasks on a Ray cluster. Ray places them; what a lost machine was doing is begun again from its checkpoint.

Nothing that matters passes through Ray: runs and scores lie where every node sees them, so a killed worker, node
or driver costs the work since the last checkpoint and no more. A stop reaches the workers as the interrupt that Ctrl-C
is on one machine.
"""

import contextlib
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

from expgen.cluster.engine import Task, TaskResources, TaskResult
from expgen.cluster.follow import Follower
from expgen.errors import InputError
from expgen.plugins import Plugins, known_plugins, load_plugins
from expgen.provenance import version
from expgen.runs.stop import StopSignals
from expgen.training.loop import Watcher
from expgen.training.resources import limit_cores

POLL_SECONDS = 2.0
LOSSES = 10  # in a row without a new checkpoint, after which a task is given up
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # 0: a node's address is 127.0.0.1, where alone its ports then listen
STORE_BYTES = 100_000_000  # of a cluster of our own: next to nothing passes through it
MOST_HANDED = 1000  # tasks that Ray has at a time


class LostTooOften(RuntimeError):
    """Every machine that tried a task died of it, or the cluster does nothing but die."""


class Answer(NamedTuple):
    """What a worker sends back."""

    value: Any
    was_interrupted: bool


class RayEngine:
    """Connects for the time of `run`; without an address to `RAY_ADDRESS`, else to a cluster of this machine alone."""

    def __init__(self, address: str | None = None, share: TaskResources | None = None) -> None:
        self.address, self.share = address, share or TaskResources()

    def run(self, tasks: Sequence[Task], watcher: Watcher) -> Iterator[TaskResult]:
        """As tasks end, in whatever order."""
        with _connected(self.address) as ray:
            share = self.share.on([node["Resources"] for node in ray.nodes() if node["Alive"]])
            yield from _Placement(ray, share, watcher).run(tasks)


class _Placement:
    """Hands tasks to Ray as those they wait for end, and again when they are lost."""

    def __init__(self, ray: Any, share: TaskResources, watcher: Watcher) -> None:
        self.ray, self.share, self.watcher = ray, share, watcher
        self.remote = ray.remote(num_cpus=share.cpus, num_gpus=share.gpus, max_retries=0)(_in_worker)
        self.ready: deque[Task] = deque()
        self.running: dict[Any, Task] = {}
        self.losses: dict[str, list[tuple[str, ...]]] = {}  # by task: its checkpoints at each loss
        self.follower = Follower(watcher)
        self.is_stopping = False

    def run(self, tasks: Sequence[Task]) -> Iterator[TaskResult]:
        by_name = {task.name: task for task in tasks}
        order = TopologicalSorter({task.name: by_name.keys() & task.after for task in tasks})
        order.prepare()
        while order.is_active():
            self.ready.extend(by_name[name] for name in order.get_ready())
            if not self.running and (self.is_stopping or not self.ready):
                return
            for ended in self._turn():
                yield ended
                order.done(ended.task.name)

    def _turn(self) -> Iterator[TaskResult]:
        while self.ready and len(self.running) < MOST_HANDED and not self.is_stopping:
            task = self.ready.popleft()
            self.running[self.remote.remote(task.call, self.share, version(), known_plugins())] = task
        done, _ = self.ray.wait(list(self.running), num_returns=1, timeout=POLL_SECONDS)
        if self.watcher.should_stop() and not self.is_stopping:
            self.is_stopping = True
            for reference in self.running:
                self.ray.cancel(reference)
        if not done:
            self.follower.poll(self.running.values())
        for reference in done:
            task = self.running.pop(reference)
            ended = self._outcome(reference, task)
            if ended is not None:
                self.follower.forget(task)
                yield ended

    def _outcome(self, reference: Any, task: Task) -> TaskResult | None:
        """None: it has been put back among those to run, or was called off before it began."""
        exceptions = self.ray.exceptions
        try:
            answer: Answer = self.ray.get(reference)
        except exceptions.TaskCancelledError:
            return None
        except exceptions.RayTaskError as error:  # raised by the task itself
            cause = error.cause if isinstance(error.cause, Exception) else RuntimeError(str(error))
            cause.__cause__ = error
            return TaskResult(task, error=cause)
        except exceptions.RayError as error:  # its worker or its node is gone
            return self._lost(task, type(error).__name__)
        if answer.was_interrupted and not self.is_stopping:  # its machine is being taken away
            return self._lost(task, "interrupted")
        return TaskResult(task, answer.value)

    def _lost(self, task: Task, why: str) -> TaskResult | None:
        seen = self.losses.setdefault(task.name, [])
        seen.append(self.follower.stored(task))
        if len(seen) >= LOSSES and len(set(seen[-LOSSES:])) == 1:
            error = LostTooOften(f"lost {LOSSES} times without a new checkpoint, last by {why}")
            return TaskResult(task, error=error)
        print(f"expgen: {task.name}: lost ({why}); it continues on another node", file=sys.stderr, flush=True)
        self.ready.appendleft(task)
        return None


def _in_worker(call: Any, share: TaskResources, driver_version: str, known: Plugins) -> Answer:
    """What a worker runs: the task, within its share, stoppable. Ray lets it see the GPUs that it was given alone."""
    if version() != driver_version:
        raise InputError(f"a node has expgen {version()}; accepted: {driver_version}, as where the command runs")
    load_plugins(known)
    if not share.gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # of its own accord Ray would leave it all of the node's
    with limit_cores(share.cores), StopSignals() as signals:
        return Answer(call(Watcher(should_stop=signals.arrived)), signals.arrived())


@contextlib.contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    is_own = address is None and not os.environ.get("RAY_ADDRESS")
    if is_own:
        os.environ[LOOPBACK] = "0"  # read as Ray is imported
    try:
        import ray
    except ImportError:
        raise InputError("--engine is ray, which is not installed; accepted: pip install 'expgen[ray]'") from None
    if ray.is_initialized():
        yield ray
        return
    before = signal.getsignal(signal.SIGTERM)
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "configure_logging": True}
    try:
        if is_own:
            address = "local"  # None would join any cluster that happens to be up on this machine
            settings |= {"include_dashboard": False, "object_store_memory": STORE_BYTES}
        ray.init(address, **settings)
    except (ConnectionError, ValueError, RuntimeError) as error:
        line = " ".join(str(error).split())
        raise InputError(f"--address is {address!r}: {line}; accepted: HOST:PORT of a Ray head, or auto") from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)  # Ray would leave at once
    try:
        yield ray
    finally:
        ray.shutdown()
