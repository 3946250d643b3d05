"""Shares: what a task is promised of nodes, and what is refused before it waits for ever."""

import math

import pytest

from expgen.cluster.engine import Share
from expgen.errors import InputError

GPU_NODE, CPU_NODE = {"CPU": 32.0, "GPU": 4.0}, {"CPU": 6.0}


@pytest.mark.parametrize(
    ("asked", "nodes", "given"),
    [
        (Share(), [GPU_NODE, CPU_NODE], Share(8, 1)),  # a GPU and its part of the cores
        (Share(gpus=0.5), [GPU_NODE], Share(4, 0.5)),
        (Share(gpus=0.3), [GPU_NODE], Share(2, 0.3)),  # whole cores, rounded down so that all tasks fit
        (Share(), [{"CPU": 2.0, "GPU": 4.0}], Share(0.5, 1)),  # fewer cores than GPUs
        (Share(), [GPU_NODE, {"CPU": 8.0, "GPU": 2.0}], Share(4, 1)),  # fits the poorest node too
        (Share(), [CPU_NODE, {"CPU": 0.0}, {"CPU": 4.0}], Share(4, 0)),  # a node; a head that runs nothing is none
        (Share(gpus=0), [GPU_NODE], Share(32, 0)),
        (Share(cpus=1), [CPU_NODE], Share(1, 0)),
        (Share(cpus=32, gpus=4), [GPU_NODE, CPU_NODE], Share(32, 4)),  # all of the largest
    ],
)
def test_default_share_is_one_gpu_and_its_cores(asked: Share, nodes: list[dict[str, float]], given: Share) -> None:
    assert asked.on(nodes) == given


@pytest.mark.parametrize(
    ("asked", "flag"),
    [
        (Share(gpus=8), "--gpus-per-job is 8"),
        (Share(cpus=64), "--cpus-per-job is 64"),
        (Share(cpus=8, gpus=5), "--gpus-per-job is 5"),
        (Share(cpus=33, gpus=1), "--cpus-per-job is 33"),
    ],
)
def test_what_no_node_holds_is_refused(asked: Share, flag: str) -> None:
    with pytest.raises(InputError, match=f"{flag}; accepted: what some node has"):
        asked.on([GPU_NODE, CPU_NODE])


def test_cpus_must_lie_beside_the_gpus() -> None:
    """Sixteen cores on one node and a GPU on another do not make a place for both."""
    with pytest.raises(InputError, match="--cpus-per-job is 16"):
        Share(cpus=16, gpus=1).on([{"CPU": 16.0}, {"CPU": 8.0, "GPU": 1.0}])


@pytest.mark.parametrize("asked", [Share(cpus=1), Share(gpus=1)])
def test_share_without_nodes_is_refused(asked: Share) -> None:
    with pytest.raises(InputError, match="accepted: what some node has"):
        asked.on([])


@pytest.mark.parametrize("number", [-1, math.nan, math.inf])
def test_shares_are_finite_and_not_negative(number: float) -> None:
    with pytest.raises(InputError, match="--cpus-per-job is"):
        Share(cpus=number)
    with pytest.raises(InputError, match="--gpus-per-job is"):
        Share(gpus=number)


@pytest.mark.parametrize(("cpus", "cores"), [(None, 1), (0.0, 1), (0.5, 1), (2.9, 2), (8.0, 8)])
def test_threads_are_whole_cores_and_at_least_one(cpus: float | None, cores: int) -> None:
    assert Share(cpus=cpus).cores == cores
