"""Rates, and lines with the share of the upper bound that each figure reaches."""

import time

from expgen.bench.speed import Speed, rate, shares


def test_shares_use_the_lower_bound_of_environment_and_arithmetic() -> None:
    rates = {
        "environment": 200, "arithmetic alone": 400, "update's arithmetic alone": 500, "update": 100, "training": 50,
    }  # fmt: skip
    rows = [Speed(what, "maze", 1, rate, "", "", "") for what, rate in rates.items()]
    rows.append(Speed("training", "maze", 11, 150, "", "", ""))
    assert list(shares(rows)) == [
        "update: 20.0% of its arithmetic alone (500 steps/s)",
        "training, learners 1: 25.0% of the environment alone (200 steps/s)",
        "training, learners 11: 75.0% of the environment alone (200 steps/s)",
    ]


def test_rate_ignores_the_first_call_and_counts_at_least_one() -> None:
    calls = []

    def work() -> int:
        calls.append(time.perf_counter())
        time.sleep(0.01)
        return 5

    assert 0 < rate(work, 1e-9) <= 5 / 0.01 and len(calls) == 2
    assert 0 < rate(work, 0.05) <= 5 / 0.01 and 3 < len(calls) - 2 <= 7
