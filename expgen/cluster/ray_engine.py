"""RayEngine: runs tasks on a Ray cluster and restarts lost ones from their checkpoints.

Runs and scores are stored where every node can read them, not in Ray: a killed worker, node or driver loses only the
work since the last checkpoint. A stop reaches the workers as KeyboardInterrupt, like Ctrl-C on one machine.
"""

import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter
from typing import Any

from expgen.cluster.engine import Task, TaskResources, TaskResult
from expgen.cluster.follow import RunFollower
from expgen.errors import InputError
from expgen.plugins import Plugins, known_plugins, load_plugins
from expgen.provenance import version
from expgen.runs.stop import StopSignals
from expgen.text import notify
from expgen.training.loop import Watcher
from expgen.training.resources import limit_cores

POLL_SECONDS = 2.0
MAX_LOSSES = 10  # in a row without a new checkpoint; then the task fails
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # 0: nodes use the address 127.0.0.1 and listen there only
STORE_BYTES = 100_000_000  # object store of a local cluster, which holds almost nothing
MAX_SUBMITTED = 1000  # tasks submitted to Ray at a time


class RayEngine:
    """Connects to `address`, else to RAY_ADDRESS, else to a new cluster on this machine, for the time of `run`."""

    def __init__(self, address: str | None = None, resources: TaskResources | None = None) -> None:
        self.address, self.resources = address, resources or TaskResources()

    def run(self, tasks: Sequence[Task], watcher: Watcher) -> Iterator[TaskResult]:
        """Yield results as tasks end."""
        with _connected(self.address) as ray:
            resources = self.resources.on([node["Resources"] for node in ray.nodes() if node["Alive"]])
            yield from _Scheduler(ray, resources, watcher).run(tasks)


class _Scheduler:
    """Submits tasks to Ray when their dependencies have ended, and again when they are lost."""

    def __init__(self, ray: Any, resources: TaskResources, watcher: Watcher) -> None:
        self.ray, self.resources, self.watcher = ray, resources, watcher
        self.remote = ray.remote(num_cpus=resources.cpus, num_gpus=resources.gpus, max_retries=0)(_run_in_worker)
        self.ready: deque[Task] = deque()
        self.running: dict[Any, Task] = {}
        self.losses: dict[str, list[tuple[str, ...]]] = {}  # by task: its checkpoints at each loss
        self.follower = RunFollower(watcher)
        self.is_stopping = False

    def run(self, tasks: Sequence[Task]) -> Iterator[TaskResult]:
        by_name = {task.name: task for task in tasks}
        order = TopologicalSorter({task.name: by_name.keys() & task.after for task in tasks})
        order.prepare()
        while order.is_active():
            self.ready.extend(by_name[name] for name in order.get_ready())
            if not self.running and (self.is_stopping or not self.ready):
                return
            for result in self._submit_and_wait():
                yield result
                order.done(result.task.name)

    def _submit_and_wait(self) -> Iterator[TaskResult]:
        """Submit ready tasks, wait up to POLL_SECONDS, yield the results of tasks that have ended."""
        while self.ready and len(self.running) < MAX_SUBMITTED and not self.is_stopping:
            task = self.ready.popleft()
            self.running[self.remote.remote(task.call, self.resources, version(), known_plugins())] = task
        done, _ = self.ray.wait(list(self.running), num_returns=1, timeout=POLL_SECONDS)
        if self.watcher.should_stop() and not self.is_stopping:
            self.is_stopping = True
            for reference in self.running:
                self.ray.cancel(reference)
        if not done:
            self.follower.poll(self.running.values())
        for reference in done:
            task = self.running.pop(reference)
            result = self._result(reference, task)
            if result is not None:
                self.follower.forget(task)
                yield result

    def _result(self, reference: Any, task: Task) -> TaskResult | None:
        """Return the result of a task; None if it was lost and will run again, or was cancelled before it began."""
        exceptions = self.ray.exceptions
        try:
            value, was_interrupted = self.ray.get(reference)
        except exceptions.TaskCancelledError:
            return None
        except exceptions.RayTaskError as error:  # raised by the task itself
            cause = error.cause if isinstance(error.cause, Exception) else RuntimeError(str(error))
            cause.__cause__ = error
            return TaskResult(task, error=cause)
        except exceptions.RayError as error:  # the worker or node is gone
            return self._lost(task, type(error).__name__)
        if was_interrupted and not self.is_stopping:  # the node is shutting down
            return self._lost(task, "interrupted")
        return TaskResult(task, value)

    def _lost(self, task: Task, reason: str) -> TaskResult | None:
        seen = self.losses.setdefault(task.name, [])
        seen.append(self.follower.checkpoints(task))
        if len(seen) >= MAX_LOSSES and len(set(seen[-MAX_LOSSES:])) == 1:
            error = RuntimeError(f"lost {MAX_LOSSES} times without a new checkpoint, last by {reason}")
            return TaskResult(task, error=error)
        notify(f"expgen: {task.name}: lost ({reason}); it continues on another node")
        self.ready.appendleft(task)
        return None


def _run_in_worker(call: Any, resources: TaskResources, driver_version: str, plugins: Plugins) -> tuple[Any, bool]:
    """Run a task in a worker, which sees only its reserved GPUs; return its value and whether it was interrupted."""
    if version() != driver_version:
        raise InputError(f"a node has expgen {version()}; accepted: {driver_version}, as where the command runs")
    load_plugins(plugins)
    if not resources.gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # without a reservation Ray shows all GPUs
    with limit_cores(resources.threads), StopSignals() as signals:
        return call(Watcher(should_stop=signals.arrived)), signals.arrived()


@contextlib.contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    is_own = address is None and not os.environ.get("RAY_ADDRESS")
    if is_own:
        os.environ[LOOPBACK] = "0"  # Ray reads it on import
    try:
        import ray
    except ImportError:
        raise InputError("--engine is ray, which is not installed; accepted: pip install 'expgen[ray]'") from None
    if ray.is_initialized():
        yield ray
        return
    sigterm_handler = signal.getsignal(signal.SIGTERM)
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "configure_logging": True}
    try:
        if is_own:
            address = "local"  # None would join any cluster that runs on this machine
            settings |= {"include_dashboard": False, "object_store_memory": STORE_BYTES}
        ray.init(address, **settings)
    except (ConnectionError, ValueError, RuntimeError) as error:
        line = " ".join(str(error).split())
        raise InputError(f"--address is {address!r}: {line}; accepted: HOST:PORT of a Ray head, or auto") from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, sigterm_handler)  # Ray's handler would exit at once
    try:
        yield ray
    finally:
        ray.shutdown()
