"""Load of the machine, bottleneck and shares of a learner's time."""

import time
from typing import Any

import pytest
import torch

from expgen.bench.load import LearnerClock, Load, LoadMonitor, read_samples
from expgen.runs.make_config import make_config
from expgen.runs.plan import build_learner, plans_of
from expgen.training.resources import plan_resources

SHARES = {"games": 0.2, "acting": 0.3, "reward": 0.1, "update": 0.4}


def test_load_counts_only_time_after_restart() -> None:
    monitor = LoadMonitor(torch.device("cpu"))
    busy = time.thread_time() + 0.1
    while time.thread_time() < busy:
        pass
    monitor.restart()
    time.sleep(0.2)
    asleep = monitor.stop()
    assert asleep.main_thread < 0.2 and asleep.gpu is None and asleep.watts is None


@pytest.mark.parametrize(
    ("load", "is_gpu", "words"),
    [
        (Load(5.0, 0.5, 0.95, 600.0), True, "the GPU"),
        (Load(15.5, 0.5, 0.5, 300.0), True, "the cores"),
        (Load(5.0, 0.99, 0.5, 300.0), True, "the main thread"),
        (Load(5.0, 0.5, 0.5, 300.0), True, "latency: no resource is full, most of a learner's time is update"),
        (Load(5.0, 0.5), True, "latency"),
        (Load(1.0, 1.0), False, "the cores; most of a learner's time is update"),
    ],
)
def test_bottleneck_is_the_resource_that_is_full(load: Load, is_gpu: bool, words: str) -> None:
    assert load.bottleneck(16, SHARES, is_gpu).startswith(words)


def test_load_description_omits_a_missing_gpu() -> None:
    assert Load(7.64, 0.9).describe(16) == "7.6 of 16 cores busy, main thread 90%"
    assert Load(7.6, 0.9, 0.8, 271.3).describe(16).endswith("; GPU busy 80% of the time, 271 W")


def test_read_samples_skips_lines_without_numbers() -> None:
    assert read_samples("80, 271.3\n[N/A], [N/A]\n90, 300\n") == [(80.0, 271.3), (90.0, 300.0)]


def test_shares_of_a_learners_time_add_up_to_one(small: Any) -> None:
    settings = {name: value for name, value in small.settings.items() if name not in ("preset", "device")}
    config = make_config(algo="maxent", preset="smoke", **settings)
    learner = build_learner(config, plans_of(config)[0], plan_resources("cpu", 1))
    clock, began = LearnerClock(learner), time.perf_counter()
    for _ in learner.iterate():
        pass
    shares = clock.shares(time.perf_counter() - began)
    learner.close()
    assert set(shares) == set(SHARES) and sum(shares.values()) == pytest.approx(1)
    assert all(0 < share < 1 for share in shares.values())
