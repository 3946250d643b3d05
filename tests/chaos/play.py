"""play: cause every fault in turn, in as many reproductions as needed."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from expgen.storage.location import is_url
from expgen.storage.view import fetch
from tests.chaos.comparison import compare
from tests.chaos.scene import JOBS, AllDone, Fault, Scene
from tests.children import is_running
from tests.cluster.conftest import until


def play(
    scene_of: Callable[[int], Scene], faults: list[Fault], local: Path, folder_of: Callable[[int], Path]
) -> dict[str, Any]:
    """Cause every fault in turn, in as many reproductions as needed; compare the result with `local`."""
    began = time.monotonic()
    left, rounds = list(faults), []
    while left:
        number = len(rounds)
        rounds.append(break_one(scene_of(number), left, local, folder_of(number)))
    return {
        "ray_seconds": round(time.monotonic() - began),
        "reproductions": len(rounds),
        **{name: sum((row[name] for row in rounds), start=type(first)()) for name, first in rounds[0].items()},
        **{name: all(row[name] for row in rounds) for name, first in rounds[0].items() if isinstance(first, bool)},
    }


def break_one(scene: Scene, left: list[Fault], local: Path, folder: Path) -> dict[str, Any]:
    """Run one reproduction to its end, into `folder`; the faults it had are removed from `left`."""
    count = len(left)
    for index in range(count):
        share = index * len(JOBS) // (count + 1)
        until(lambda share=share: scene.done() >= share, f"{share} jobs")
        scene.log.append({"fault": left[0].__name__.replace("_", " "), "after_jobs": scene.done()})
        try:
            left[0](scene)
        except AllDone:
            scene.log.pop()
            break
        print(scene.log[-1], flush=True)
        left.pop(0)
    assert scene.log, "every job was done before the first fault"
    while scene.end_driver() != 0:
        assert scene.starts < 20, scene.log
        scene.driver = scene.start()
    report = {"faults": scene.log, "driver_starts": scene.starts}
    if is_url(scene.out):
        fetch(scene.out, folder)
    report |= compare(local, folder)
    scene.cluster.cluster.shutdown()
    until(lambda: not any(session.processes() for session in scene.sessions), "the clusters' processes to end")
    return {**report, "processes_left": sum(map(is_running, scene.seen))}
