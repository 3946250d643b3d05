"""Faults of object storage: slow, failing or not responding, and writers killed during an upload."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator

from tests.chaos.cluster_faults import kill_driver, kill_nodes
from tests.chaos.scene import Fault, Scene
from tests.cluster.conftest import until

PATIENCE = 40  # seconds for which storage operations are retried


def slow_storage(scene: Scene) -> None:
    """Delay every request by a third of a second until another job is done."""
    with broken(scene, delay=0.3):
        await_a_job(scene)


def refuse_a_third(scene: Scene) -> None:
    with broken(scene, refused=0.33):
        await_a_job(scene)


def outage(scene: Scene) -> None:
    """Reject all requests for a while, while a worker is running."""
    scene.worker()
    with broken(scene, refused=1.0):
        time.sleep(PATIENCE / 2)


def kill_while_pushing(scene: Scene) -> None:
    """Delay requests so that an upload is always running, then kill."""
    worker = scene.worker()
    with broken(scene, delay=0.5):
        time.sleep(3)
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)


def long_outage(scene: Scene) -> None:
    """An outage longer than PATIENCE: jobs fail with one line, and the same command resumes afterwards."""
    scene.worker()
    with broken(scene, refused=1.0):
        scene.log[-1]["driver_status"] = scene.end_driver()
    scene.driver = scene.start()


@contextlib.contextmanager
def broken(scene: Scene, delay: float = 0.0, refused: float = 0.0) -> Iterator[None]:
    assert scene.server is not None
    before = scene.server.requests, scene.server.refusals
    scene.server.delay, scene.server.refused = delay, refused
    try:
        yield
    finally:
        scene.server.delay = scene.server.refused = 0.0
    scene.log[-1] |= {"requests": scene.server.requests - before[0], "refused": scene.server.refusals - before[1]}


def await_a_job(scene: Scene) -> None:
    done = scene.done()
    until(lambda: scene.done() > done or scene.driver.poll() is not None, "another job")


STORAGE_FAULTS: list[Fault] = [
    slow_storage,
    kill_while_pushing,
    refuse_a_third,
    kill_nodes,
    outage,
    kill_driver,
    long_outage,
]
