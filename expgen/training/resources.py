"""Divide the available cores between worker processes, environment threads and torch threads."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

import torch

from expgen.errors import InputError
from expgen.settings import check_type
from expgen.text import short_repr

MAX_PROCESSES = 1024
CORES_PER_WORKER = 4  # on a GPU: one runs the pipeline, the others step the games
_CORE_LIMIT: ContextVar[int | None] = ContextVar("core_limit", default=None)


@dataclass(frozen=True)
class Resources:
    """The device and numbers of threads of one process."""

    device: torch.device
    torch_threads: int
    env_threads: int  # per environment
    updates_at_once: int  # learners that may update at the same time


def plan_resources(device: str, num_learners: int) -> Resources:
    """Return the threads for `num_learners` learners on the available cores.

    On a GPU the cores step the games: the N games of a learner get twice the learner's share of the cores, from one to
    eight threads. On the CPU a learner alternates between games and arithmetic, so both may use all cores;
    OMP_NUM_THREADS limits the arithmetic to fewer, which is much faster if other processes use the cores too.
    """
    cores = available_cores()
    chosen = use_device(device)
    if chosen.type == "cuda":
        threads = min(8, max(1, 2 * cores // num_learners))
        return Resources(chosen, torch_threads=1, env_threads=threads, updates_at_once=2)
    return Resources(chosen, torch_threads=min(cores, _omp_threads()), env_threads=cores, updates_at_once=1)


def check_processes(asked: int | str) -> int | None:
    """Return the value of `--processes` as a number, None for `auto`; raise InputError for anything else."""
    if str(asked) == "auto":
        return None
    if not (re.fullmatch(r"\d{1,9}", str(asked), re.ASCII) and 0 < int(asked) <= MAX_PROCESSES):
        raise InputError(f"--processes is {short_repr(asked)}; accepted: auto, or 1 to {MAX_PROCESSES}")
    return int(asked)


def num_workers(asked: int | str, device: str, num_learners: int) -> int:
    """Return the number of worker processes for `num_learners` unfinished learners; 1 means no extra process.

    `asked` is the value of `--processes`. `auto` is a worker for every CORES_PER_WORKER cores on a GPU, and one on the
    CPU, where one process can use all cores.
    """
    number = check_processes(asked)
    if number is None:
        number = available_cores() // CORES_PER_WORKER if resolve_device(device).type == "cuda" else 1
    return max(1, min(number, num_learners))


def available_cores() -> int:
    """Return how many cores this process may use: the limit set by `limit_cores`, or its CPU affinity."""
    return _CORE_LIMIT.get() or len(os.sched_getaffinity(0))


def _omp_threads() -> int:
    """Return OMP_NUM_THREADS; unlimited if it is not a positive number."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() and int(asked) > 0 else sys.maxsize


@contextlib.contextmanager
def limit_cores(cores: int) -> Iterator[None]:
    """Make `available_cores` return `cores` inside, for a process that shares its machine with others."""
    before = _CORE_LIMIT.set(cores)
    try:
        yield
    finally:
        _CORE_LIMIT.reset(before)


def use_device(device: str | torch.device) -> torch.device:
    """Resolve `device` and, if it is a GPU, make it the current CUDA device."""
    chosen = resolve_device(device)
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen.index or 0)
    return chosen


def resolve_device(device: str | torch.device) -> torch.device:
    """Return the torch device for `auto`, `cpu`, `cuda` or `cuda:N`; raise InputError if there is no such GPU."""
    check_type("--device", device, (str, torch.device), "auto, cpu, cuda, cuda:N")
    device = str(device)
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    parts = re.fullmatch(r"(cpu|cuda)(?::(\d{1,9}))?", device, re.ASCII)
    if parts is None:
        raise InputError(f"--device is {short_repr(device)}; accepted: auto, cpu, cuda, cuda:N")
    if parts[1] == "cuda" and int(parts[2] or 0) >= torch.cuda.device_count():
        raise InputError(f"--device is {device!r} but this machine has {torch.cuda.device_count()} GPUs; accepted: cpu")
    return torch.device(device)


def hardware(device: torch.device) -> str:
    """Return for example `NVIDIA H200 with 16 cores` or `CPU with 2 cores`."""
    cores = f"{available_cores()} cores"
    return f"{torch.cuda.get_device_name(device)} with {cores}" if device.type == "cuda" else f"CPU with {cores}"
