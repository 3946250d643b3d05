"""Engines and shares without a cluster."""

import pytest

from expgen.cluster.engine import LocalEngine, make_engine
from expgen.cluster.share import Share
from expgen.cluster.task import Task, Watcher
from expgen.errors import InputError


def test_the_local_engine_goes_on_after_an_error_and_ends_at_a_stop() -> None:
    ran: list[str] = []

    def work(name: str):
        def call(watcher: Watcher) -> str:
            ran.append(name)
            if name == "a":
                raise InputError("no")
            return name

        return call

    tasks = [Task(name, work(name)) for name in "abc"]
    ended = list(LocalEngine().run(tasks, Watcher(should_stop=lambda: "b" in ran)))
    assert ran == ["a", "b"] and ended[1].result() == "b"
    with pytest.raises(InputError):
        ended[0].result()


GPU_NODE, CPU_NODE = {"CPU": 32.0, "GPU": 4.0}, {"CPU": 6.0}


@pytest.mark.parametrize(
    ("asked", "nodes", "given"),
    [
        (Share(), [GPU_NODE, CPU_NODE], Share(8, 1)),  # a GPU and its part of the cores
        (Share(gpus=0.5), [GPU_NODE], Share(4, 0.5)),
        (Share(), [CPU_NODE, {"CPU": 0.0}, {"CPU": 4.0}], Share(4, 0)),  # a node; a head that runs nothing is none
        (Share(gpus=0), [GPU_NODE], Share(32, 0)),
        (Share(cpus=1), [CPU_NODE], Share(1, 0)),
    ],
)
def test_a_device_is_worth(asked: Share, nodes: list[dict[str, float]], given: Share) -> None:
    assert asked.on(nodes) == given


@pytest.mark.parametrize("asked", [Share(gpus=8), Share(cpus=64), Share(cpus=8, gpus=5)])
def test_what_no_node_holds_is_refused(asked: Share) -> None:
    with pytest.raises(InputError, match="accepted: what some node has"):
        asked.on([GPU_NODE, CPU_NODE])


def test_flags_of_a_cluster_need_one() -> None:
    with pytest.raises(InputError, match="--engine ray"):
        make_engine("local", "auto")
    with pytest.raises(InputError, match="--cpus-per-job is -1"):
        Share(cpus=-1)
    with pytest.raises(InputError, match="carrier"):
        make_engine("carrier-pigeon")
