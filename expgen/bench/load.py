"""Measure the load of the machine and a learner's time by activity, and name the bottleneck."""

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

FULL = 0.9  # share of a resource from which it counts as the bottleneck
SAMPLE_MS = 200  # between two samples of the GPU


@dataclass
class Load:
    """Mean load of the machine during training."""

    cores: float = 0.0  # busy cores, over all threads of this process
    main_thread: float = 0.0  # share of one core used by the thread that runs the pipeline
    gpu: float | None = None  # share of time in which any kernel ran; None: unknown
    watts: float | None = None

    def describe(self, num_cores: int) -> str:
        """Return for example `7.6 of 16 cores busy, main thread 90%; GPU busy 80% of the time, 271 W`."""
        gpu = "" if self.gpu is None else f"; GPU busy {self.gpu:.0%} of the time, {self.watts:.0f} W"
        return f"{self.cores:.1f} of {num_cores} cores busy, main thread {self.main_thread:.0%}{gpu}"

    def bottleneck(self, num_cores: int, shares: dict[str, float], is_gpu: bool) -> str:
        """Return which resource is fully used; if none is, the activity on which a learner spends most of its time."""
        longest = max(shares, key=lambda activity: shares[activity])
        if not is_gpu:
            return f"the cores; most of a learner's time is {longest}"
        if self.gpu is not None and self.gpu > FULL:
            return "the GPU: it is always busy"
        if self.cores > FULL * num_cores:
            return "the cores: all are busy"
        if self.main_thread > FULL:
            return "the main thread, which runs all learners; more worker processes (train --processes) would help"
        return f"latency: no resource is full, most of a learner's time is {longest}; more learners would help"


class LoadMonitor:
    """Measures the load from its creation, or the last `restart`, to `stop`.

    Call its methods from the thread that runs the pipeline.
    """

    def __init__(self, device: torch.device) -> None:
        self.program = _nvidia_smi(device) if device.type == "cuda" else None
        self.restart()

    def restart(self) -> None:
        """Start measuring again."""
        self.began = _clocks()

    def stop(self) -> Load:
        """Stop and return the mean load."""
        elapsed, process, thread = _clocks() - self.began
        load = Load(process / elapsed, thread / elapsed)
        if self.program is None:
            return load
        self.program.terminate()
        samples = read_samples(self.program.communicate()[0])[-int(elapsed * 1000 / SAMPLE_MS) :]
        if samples:
            percent, load.watts = np.mean(samples, axis=0)
            load.gpu = percent / 100
        return load


def _clocks() -> ndarray:
    """Return wall time, CPU time of the process and CPU time of this thread: `[3]`, seconds."""
    return np.array([time.perf_counter(), time.process_time(), time.thread_time()])


def _nvidia_smi(device: torch.device) -> "subprocess.Popen[str] | None":
    """Start nvidia-smi, which prints a GPU's utilization and power repeatedly; None if it is not installed."""
    name = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
    query = ["--query-gpu=utilization.gpu,power.draw", "--format=csv,noheader,nounits", "-lms", str(SAMPLE_MS)]
    try:
        return subprocess.Popen(
            ["nvidia-smi", "-i", name, *query], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    except OSError:
        return None


def read_samples(text: str) -> list[tuple[float, float]]:
    """Parse lines such as `80, 271.3`; skip others, such as `[N/A]`."""
    samples = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            percent, watts = (float(part) for part in line.split(","))
            samples.append((percent, watts))
    return samples


class LearnerClock:
    """Measures a learner's time in games, acting and reward; the rest is its update."""

    def __init__(self, learner: Learner) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        env: Any = learner.env
        lane: Any = learner.lane
        env.act, env.observe = self.timing("games")(env.act), self.timing("games")(env.observe)
        lane.start, lane.wait = self.timing("acting")(lane.start), self.timing("acting")(lane.wait)
        learner.reward = _TimedReward(learner.reward, self)  # type: ignore[assignment]

    def shares(self, total: float) -> dict[str, float]:
        """Return each activity's share of `total` seconds."""
        parts = {activity: self.seconds[activity] / total for activity in ("games", "acting", "reward")}
        return parts | {"update": 1 - sum(parts.values())}

    @contextlib.contextmanager
    def timing(self, activity: str) -> Iterator[None]:
        """Add the time spent inside to `activity`; also a decorator, for each call of a function."""
        began = time.perf_counter()
        yield
        self.seconds[activity] += time.perf_counter() - began


class _TimedReward:
    """A reward source that is timed with the device synchronized before and after."""

    def __init__(self, reward: Any, clock: LearnerClock) -> None:
        self.reward, self.clock = reward, clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reward, name)

    def __call__(self, rollout: Rollout) -> torch.Tensor:
        synchronize(rollout.device)
        with self.clock.timing("reward"):
            reward = self.reward(rollout)
            synchronize(rollout.device)
        return reward


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished all work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
