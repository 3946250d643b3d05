"""Which device is meant, and what is said where there is none."""

import os

import pytest
import torch

from expgen.errors import InputError
from expgen.training.resources import hardware, limit_cores, num_workers, plan_resources, resolve_device, use_device


def test_auto_takes_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_available, kind in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda answer=is_available: answer)
        assert resolve_device("auto").type == kind


MANY = "1" * 5000


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:-1", "", "mps", "cpu:x", "cuda:", "cuda:²", f"cuda:{MANY}"])
def test_unknown_devices_are_refused(device: str) -> None:
    with pytest.raises(InputError, match="accepted: auto, cpu, cuda, cuda:N"):
        resolve_device(device)


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for count, device in ((0, "cuda"), (0, "cuda:0"), (2, "cuda:2")):
        monkeypatch.setattr(torch.cuda, "device_count", lambda answer=count: answer)
        with pytest.raises(InputError, match=f"--device is '{device}' but this machine has {count} GPUs"):
            resolve_device(device)
    assert resolve_device("cuda:1") == torch.device("cuda:1")


def test_a_gpu_without_a_number_is_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA takes numbers only; what it was given is noted here, for want of a GPU."""
    given: list[object] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", given.append)
    for device in ("cuda", "cuda:1", "cpu"):
        use_device(device)
    assert given == [0, 1]


def test_on_the_cpu_no_more_threads_than_cores_we_may_use() -> None:
    cores = len(os.sched_getaffinity(0))
    for num_learners in (1, 11):
        plan = plan_resources("cpu", num_learners)
        assert plan.device == torch.device("cpu")
        assert 1 <= plan.torch_threads <= cores and 1 <= plan.env_threads <= cores


@pytest.mark.parametrize(("asked", "threads"), [("1", 1), ("3", 3), ("9", 4), ("", 4), ("0", 4), ("2,1", 4)])
def test_the_arithmetic_keeps_to_what_omp_num_threads_says(
    monkeypatch: pytest.MonkeyPatch, asked: str, threads: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    plan = plan_resources("cpu", 1)
    assert (plan.torch_threads, plan.env_threads) == (threads, 4)


def test_hardware_text_names_device_and_cores() -> None:
    assert hardware(torch.device("cpu")) == f"CPU with {len(os.sched_getaffinity(0))} cores"
    with limit_cores(7):  # by a cluster, of a larger machine
        assert hardware(torch.device("cpu")) == "CPU with 7 cores"


@pytest.mark.parametrize(
    ("asked", "device", "cores", "learners", "workers"),
    [
        ("auto", "cuda", 16, 11, 4),
        ("auto", "cuda", 16, 3, 3),
        ("auto", "cuda", 7, 11, 1),
        ("auto", "cuda", 2, 11, 1),
        ("auto", "cuda", 16, 0, 1),
        ("auto", "cpu", 16, 11, 1),
        ("3", "cpu", 2, 11, 3),
        (8, "cuda", 2, 11, 8),
        (8, "cuda", 16, 5, 5),
        ("1", "cuda", 16, 11, 1),
    ],
)
def test_worker_processes_follow_cores_and_learners(
    asked: int | str, device: str, cores: int, learners: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with limit_cores(cores):
        assert num_workers(asked, device, learners) == workers


@pytest.mark.parametrize("asked", ["0", "-1", "two", "1.5", "", 0, -3, True, "²"])
def test_other_numbers_of_processes_are_refused(asked: int | str) -> None:
    with pytest.raises(InputError, match=f"--processes is {asked!r}; accepted: auto, or 1 to 1024"):
        num_workers(asked, "cpu", 2)


def test_more_digits_than_a_number_may_have_are_no_number_of_processes() -> None:
    with pytest.raises(InputError, match="--processes is a str; accepted: auto, or 1 to 1024"):
        num_workers(MANY, "cpu", 2)
