"""Faults of a cluster and its driver: processes, nodes or the head are killed or terminated."""

import os
import signal

from tests.chaos.scene import Fault, Scene
from tests.children import is_running
from tests.cluster.conftest import LocalCluster, until


def kill_worker(scene: Scene) -> None:
    os.kill(scene.worker(), signal.SIGKILL)


def term_worker(scene: Scene) -> None:
    os.kill(scene.worker(), signal.SIGTERM)


def kill_nodes(scene: Scene) -> None:
    scene.worker()
    for index in range(2):
        scene.cluster.kill_node(index)


def kill_driver(scene: Scene) -> None:
    worker = scene.worker()
    scene.driver.kill()
    scene.end_driver()
    until(lambda: not is_running(worker), "the worker of a dead driver to end")
    scene.driver = scene.start()


def term_driver(scene: Scene) -> None:
    scene.worker()
    scene.driver.terminate()
    status = scene.end_driver()
    scene.log[-1]["driver_status"] = status
    scene.driver = scene.start()


def restart_head(scene: Scene) -> None:
    scene.worker()
    scene.cluster.cluster.remove_node(scene.cluster.cluster.head_node, allow_graceful=False)
    scene.end_driver()
    scene.cluster.cluster.shutdown()
    scene.cluster = LocalCluster(2)
    scene.sessions.append(scene.cluster)
    scene.driver = scene.start()


CLUSTER_FAULTS: list[Fault] = [kill_worker, kill_nodes, term_worker, kill_driver, term_driver, restart_head]
