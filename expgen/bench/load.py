"""How busy training keeps the machine, where a learner's time goes, and what limits it, in words."""

import contextlib
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy import ndarray

from expgen.rollout.rollout import Rollout
from expgen.training.learner import Learner

FULL = 0.9  # of what there is; beyond, more work would mostly wait
SAMPLE_MS = 200  # between two looks at the GPU


@dataclass
class Load:
    """What training kept busy, on the mean."""

    cores: float = 0.0  # of the machine, by all threads of this process
    turning: float = 0.0  # of one core, by the thread that turns the learners
    gpu: float | None = None  # part of the time in which any kernel ran; None: unknown
    watts: float | None = None

    def words(self, num_cores: int) -> str:
        """As in `7.6 of 16 cores busy, 0.9 of one by the thread that turns the learners; GPU at work 80%, 271 W`."""
        turned = f"{self.turning:.1f} of one by the thread that turns the learners"
        gpu = "" if self.gpu is None else f"; GPU at work {self.gpu:.0%} of the time, {self.watts:.0f} W"
        return f"{self.cores:.1f} of {num_cores} cores busy, {turned}{gpu}"

    def limit(self, num_cores: int, shares: dict[str, float], is_gpu: bool) -> str:
        """What is full; where nothing is, what a learner waits for longest (`shares` of its time)."""
        longest = max(shares, key=lambda what: shares[what])
        if not is_gpu:
            return f"the cores; a learner spends most on its {longest}"
        if self.gpu is not None and self.gpu > FULL:
            return "the GPU: it is at work all the time"
        if self.cores > FULL * num_cores:
            return "the cores: all are busy"
        if self.turning > FULL:
            return "one thread: it turns all learners; more worker processes (train --processes) would help"
        return f"waiting: nothing is full, a learner spends most on its {longest}; more side by side would help"


class Watch:
    """Looks at the load from its start, or its last restart, to its end."""

    def __init__(self, device: torch.device) -> None:
        self.program = _nvidia_smi(device) if device.type == "cuda" else None
        self.restart()

    def restart(self) -> None:
        """Forget what was before."""
        self.began = _clocks()

    def end(self) -> Load:
        """The load since; to be called by the thread that turns the learners, as `restart` is."""
        passed, process, thread = _clocks() - self.began
        load = Load(process / passed, thread / passed)
        if self.program is None:
            return load
        self.program.terminate()
        samples = read_samples(self.program.communicate()[0])[-int(passed * 1000 / SAMPLE_MS) :]
        if samples:
            percent, load.watts = np.mean(samples, axis=0)
            load.gpu = percent / 100
        return load


def _clocks() -> ndarray:
    """Seconds that have passed, and those of all cores and of this thread: `[3]`."""
    return np.array([time.perf_counter(), time.process_time(), time.thread_time()])


def _nvidia_smi(device: torch.device) -> "subprocess.Popen[str] | None":
    """A program that tells a GPU's percent and watts again and again; None where there is none."""
    name = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
    query = ["--query-gpu=utilization.gpu,power.draw", "--format=csv,noheader,nounits", "-lms", str(SAMPLE_MS)]
    try:
        return subprocess.Popen(
            ["nvidia-smi", "-i", name, *query], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    except OSError:
        return None


def read_samples(text: str) -> list[tuple[float, float]]:
    """Lines as `80, 271.3`; those that say anything else, as `[N/A]`, are left out."""
    samples = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            percent, watts = (float(part) for part in line.split(","))
            samples.append((percent, watts))
    return samples


class LearnerClock:
    """Adds up where a learner's time goes: acting, games, reward; the rest is its update."""

    def __init__(self, learner: Learner) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        env: Any = learner.env
        lane: Any = learner.lane
        env.act, env.observe = self.timing("games")(env.act), self.timing("games")(env.observe)
        lane.start, lane.wait = self.timing("acting")(lane.start), self.timing("acting")(lane.wait)
        learner.reward = _TimedReward(learner.reward, self)  # type: ignore[assignment]

    def shares(self, total: float) -> dict[str, float]:
        """Of `total` seconds."""
        parts = {what: self.seconds[what] / total for what in ("games", "acting", "reward")}
        return parts | {"update": 1 - sum(parts.values())}

    @contextlib.contextmanager
    def timing(self, what: str) -> Iterator[None]:
        """Time spent inside, or in each call of the function that it decorates, is of `what`."""
        began = time.perf_counter()
        yield
        self.seconds[what] += time.perf_counter() - began


class _TimedReward:
    """A reward source whose device has nothing else to do while it is timed."""

    def __init__(self, reward: Any, clock: LearnerClock) -> None:
        self.reward, self.clock = reward, clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reward, name)

    def __call__(self, rollout: Rollout) -> torch.Tensor:
        settle(rollout.device)
        with self.clock.timing("reward"):
            paid = self.reward(rollout)
            settle(rollout.device)
        return paid


def settle(device: torch.device) -> None:
    """Wait until the device has nothing left to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
