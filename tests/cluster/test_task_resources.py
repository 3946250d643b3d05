"""TaskResources: defaults and limits."""

import math

import pytest

from expgen.cluster.engine import TaskResources
from expgen.errors import InputError

GPU_NODE, CPU_NODE = {"CPU": 32.0, "GPU": 4.0}, {"CPU": 6.0}


@pytest.mark.parametrize(
    ("asked", "nodes", "given"),
    [
        (TaskResources(), [GPU_NODE, CPU_NODE], TaskResources(8, 1)),  # a GPU and its share of the cores
        (TaskResources(gpus=0.5), [GPU_NODE], TaskResources(4, 0.5)),
        (TaskResources(gpus=0.3), [GPU_NODE], TaskResources(2, 0.3)),  # whole cores, rounded down so that all tasks fit
        (TaskResources(), [{"CPU": 2.0, "GPU": 4.0}], TaskResources(0.5, 1)),  # fewer cores than GPUs
        (TaskResources(), [GPU_NODE, {"CPU": 8.0, "GPU": 2.0}], TaskResources(4, 1)),  # fits the smallest node too
        (
            TaskResources(),
            [CPU_NODE, {"CPU": 0.0}, {"CPU": 4.0}],
            TaskResources(4, 0),
        ),  # a head without CPUs does not count
        (TaskResources(gpus=0), [GPU_NODE], TaskResources(32, 0)),
        (TaskResources(cpus=1), [CPU_NODE], TaskResources(1, 0)),
        (TaskResources(cpus=32, gpus=4), [GPU_NODE, CPU_NODE], TaskResources(32, 4)),  # all of the largest node
    ],
)
def test_default_resources_are_one_gpu_and_its_cores(
    asked: TaskResources, nodes: list[dict[str, float]], given: TaskResources
) -> None:
    assert asked.on(nodes) == given


@pytest.mark.parametrize(
    ("asked", "flag"),
    [
        (TaskResources(gpus=8), "--gpus-per-job is 8"),
        (TaskResources(cpus=64), "--cpus-per-job is 64"),
        (TaskResources(cpus=8, gpus=5), "--gpus-per-job is 5"),
        (TaskResources(cpus=33, gpus=1), "--cpus-per-job is 33"),
    ],
)
def test_resources_larger_than_every_node_are_rejected(asked: TaskResources, flag: str) -> None:
    with pytest.raises(InputError, match=f"{flag}; accepted: what some node has"):
        asked.on([GPU_NODE, CPU_NODE])


def test_cpus_and_gpus_must_be_on_the_same_node() -> None:
    """Sixteen cores on one node and a GPU on another are not enough."""
    with pytest.raises(InputError, match="--cpus-per-job is 16"):
        TaskResources(cpus=16, gpus=1).on([{"CPU": 16.0}, {"CPU": 8.0, "GPU": 1.0}])


@pytest.mark.parametrize("asked", [TaskResources(cpus=1), TaskResources(gpus=1)])
def test_resources_are_rejected_without_nodes(asked: TaskResources) -> None:
    with pytest.raises(InputError, match="accepted: what some node has"):
        asked.on([])


@pytest.mark.parametrize("number", [-1, math.nan, math.inf])
def test_resources_must_be_finite_and_not_negative(number: float) -> None:
    with pytest.raises(InputError, match="--cpus-per-job is"):
        TaskResources(cpus=number)
    with pytest.raises(InputError, match="--gpus-per-job is"):
        TaskResources(gpus=number)


@pytest.mark.parametrize(("cpus", "threads"), [(None, 1), (0.0, 1), (0.5, 1), (2.9, 2), (8.0, 8)])
def test_threads_are_whole_cores_and_at_least_one(cpus: float | None, threads: int) -> None:
    assert TaskResources(cpus=cpus).threads == threads
