"""How busy the machine is and what limits, in words."""

import time
from typing import Any

import pytest
import torch

from expgen.bench.load import LearnerClock, Load, Watch, read_samples
from expgen.runs.make_config import make_config
from expgen.runs.plan import build_learner, plans_of
from expgen.training.resources import plan_resources

SHARES = {"games": 0.2, "acting": 0.3, "reward": 0.1, "update": 0.4}


def test_load_of_a_busy_thread_is_one_core_and_of_a_sleeping_one_none() -> None:
    watch = Watch(torch.device("cpu"))
    busy = time.thread_time() + 0.1
    while time.thread_time() < busy:
        pass
    watch.restart()
    time.sleep(0.2)
    asleep = watch.end()
    assert asleep.turning < 0.2 and asleep.gpu is None and asleep.watts is None


@pytest.mark.parametrize(
    ("load", "is_gpu", "words"),
    [
        (Load(5.0, 0.5, 0.95, 600.0), True, "the GPU"),
        (Load(15.5, 0.5, 0.5, 300.0), True, "the cores"),
        (Load(5.0, 0.99, 0.5, 300.0), True, "one thread"),
        (Load(5.0, 0.5, 0.5, 300.0), True, "waiting: nothing is full, a learner spends most on its update"),
        (Load(5.0, 0.5), True, "waiting"),
        (Load(1.0, 1.0), False, "the cores; a learner spends most on its update"),
    ],
)
def test_what_limits_is_what_is_full(load: Load, is_gpu: bool, words: str) -> None:
    assert load.limit(16, SHARES, is_gpu).startswith(words)


def test_load_in_words_leaves_out_a_gpu_that_is_not_there() -> None:
    assert Load(7.64, 0.9).words(16) == "7.6 of 16 cores busy, 0.9 of one by the thread that turns the learners"
    assert Load(7.6, 0.9, 0.8, 271.3).words(16).endswith("; GPU at work 80% of the time, 271 W")


def test_lines_that_are_no_figures_are_left_out() -> None:
    assert read_samples("80, 271.3\n[N/A], [N/A]\n90, 300\n") == [(80.0, 271.3), (90.0, 300.0)]


def test_a_learner_s_time_is_shared_out_completely(small: Any) -> None:
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
