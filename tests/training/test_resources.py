"""Devices, threads, and numbers of worker processes."""

import os

import pytest
import torch

from expgen.errors import InputError
from expgen.training.resources import hardware, limit_cores, num_workers, plan_resources, resolve_device, use_device


def test_device_auto_is_a_gpu_if_available(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_available, kind in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda answer=is_available: answer)
        assert resolve_device("auto").type == kind


MANY = "1" * 5000


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:-1", "", "mps", "cpu:x", "cuda:", "cuda:²", f"cuda:{MANY}"])
def test_resolve_device_rejects_unknown_devices(device: str) -> None:
    with pytest.raises(InputError, match="accepted: auto, cpu, cuda, cuda:N"):
        resolve_device(device)


def test_resolve_device_rejects_a_missing_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for count, device in ((0, "cuda"), (0, "cuda:0"), (2, "cuda:2")):
        monkeypatch.setattr(torch.cuda, "device_count", lambda answer=count: answer)
        with pytest.raises(InputError, match=f"--device is '{device}' but this machine has {count} GPUs"):
            resolve_device(device)
    assert resolve_device("cuda:1") == torch.device("cuda:1")


def test_device_cuda_is_the_first_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.cuda.set_device is replaced, since it needs a GPU."""
    given: list[object] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", given.append)
    for device in ("cuda", "cuda:1", "cpu"):
        use_device(device)
    assert given == [0, 1]


def test_cpu_plan_uses_at_most_the_available_cores() -> None:
    cores = len(os.sched_getaffinity(0))
    for num_learners in (1, 11):
        plan = plan_resources("cpu", num_learners)
        assert plan.device == torch.device("cpu")
        assert 1 <= plan.torch_threads <= cores and 1 <= plan.env_threads <= cores


@pytest.mark.parametrize(("asked", "threads"), [("1", 1), ("3", 3), ("9", 4), ("", 4), ("0", 4), ("2,1", 4)])
def test_omp_num_threads_limits_torch_threads(monkeypatch: pytest.MonkeyPatch, asked: str, threads: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    plan = plan_resources("cpu", 1)
    assert (plan.torch_threads, plan.env_threads) == (threads, 4)


def test_hardware_text_names_device_and_cores() -> None:
    assert hardware(torch.device("cpu")) == f"CPU with {len(os.sched_getaffinity(0))} cores"
    with limit_cores(7):  # as a cluster task
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
def test_number_of_workers_depends_on_cores_and_learners(
    asked: int | str, device: str, cores: int, learners: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with limit_cores(cores):
        assert num_workers(asked, device, learners) == workers


@pytest.mark.parametrize("asked", ["0", "-1", "two", "1.5", "", 0, -3, True, "²"])
def test_num_workers_rejects_invalid_processes(asked: int | str) -> None:
    with pytest.raises(InputError, match=f"--processes is {asked!r}; accepted: auto, or 1 to 1024"):
        num_workers(asked, "cpu", 2)


def test_num_workers_rejects_a_number_with_too_many_digits() -> None:
    with pytest.raises(InputError, match="--processes is a str; accepted: auto, or 1 to 1024"):
        num_workers(MANY, "cpu", 2)
