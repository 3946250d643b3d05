"""Cores → processes and threads: what one run may use, split between workers, games and arithmetic."""

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

MOST_PROCESSES = 1024
CORES_PER_WORKER = 4  # on a GPU: one turns the learners, the others step their games
_CORE_LIMIT: ContextVar[int | None] = ContextVar("core_limit", default=None)


@dataclass(frozen=True)
class Resources:
    """How many threads do what."""

    device: torch.device
    torch_threads: int
    env_threads: int  # per environment handle
    updates_at_once: int  # learners in their update phase


def plan_resources(device: str, num_learners: int) -> Resources:
    """Fit learners to the cores there are, two included.

    On a GPU the cores are for the games: every handle gets its share, at least one, at most eight. On the CPU games
    and arithmetic take turns within a learner, so both may have all cores; OMP_NUM_THREADS keeps the arithmetic to
    fewer, which is much faster where other work wants the cores too.
    """
    cores = available_cores()
    chosen = use_device(device)
    if chosen.type == "cuda":
        threads = min(8, max(1, 2 * cores // num_learners))
        return Resources(chosen, torch_threads=1, env_threads=threads, updates_at_once=2)
    return Resources(chosen, torch_threads=min(cores, _asked_threads()), env_threads=cores, updates_at_once=1)


def check_processes(asked: int | str) -> int | None:
    """What `--processes` says: a number, or None for `auto`."""
    if str(asked) == "auto":
        return None
    if not (re.fullmatch(r"\d{1,9}", str(asked), re.ASCII) and 0 < int(asked) <= MOST_PROCESSES):
        raise InputError(f"--processes is {short_repr(asked)}; accepted: auto, or 1 to {MOST_PROCESSES}")
    return int(asked)


def num_workers(asked: int | str, device: str, num_learners: int) -> int:
    """Worker processes for `num_learners` that have steps left; 1: they train in this process.

    `asked` is what `--processes` says. By default a GPU gets a worker for every CORES_PER_WORKER cores; on the CPU
    one process can use all cores already.
    """
    number = check_processes(asked)
    if number is None:
        number = available_cores() // CORES_PER_WORKER if resolve_device(device).type == "cuda" else 1
    return max(1, min(number, num_learners))


def available_cores() -> int:
    """That this process may use: as many as were limit_cores to it, or as the machine lends it."""
    return _CORE_LIMIT.get() or len(os.sched_getaffinity(0))


def _asked_threads() -> int:
    """As many as the environment's OMP_NUM_THREADS says; no limit where that is no number from 1 on."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() and int(asked) > 0 else sys.maxsize


@contextlib.contextmanager
def limit_cores(cores: int) -> Iterator[None]:
    """Plan as on a machine of so many cores: what a cluster has promised to one task among others on its node."""
    before = _CORE_LIMIT.set(cores)
    try:
        yield
    finally:
        _CORE_LIMIT.reset(before)


def use_device(device: str | torch.device) -> torch.device:
    """As `resolve_device`; from now on a GPU chosen is the one that streams, graphs and kernels mean by themselves."""
    chosen = resolve_device(device)
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen.index or 0)
    return chosen


def resolve_device(device: str | torch.device) -> torch.device:
    """`auto`, `cpu`, `cuda` or `cuda:N`; an InputError where there is no such GPU."""
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
    """`NVIDIA H200 with 16 cores` or `CPU with 2 cores`."""
    cores = f"{available_cores()} cores"
    return f"{torch.cuda.get_device_name(device)} with {cores}" if device.type == "cuda" else f"CPU with {cores}"
