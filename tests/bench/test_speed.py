"""Speeds in words: what part of its limit each reaches."""

import time

from expgen.bench.speed import Speed, rate, shares


def test_shares_are_of_the_lower_limit() -> None:
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


def test_rate_counts_work_after_the_first_call_and_at_least_one_piece_of_it() -> None:
    calls = []

    def work() -> int:
        calls.append(time.perf_counter())
        time.sleep(0.01)
        return 5

    assert 0 < rate(work, 1e-9) <= 5 / 0.01 and len(calls) == 2
    assert 0 < rate(work, 0.05) <= 5 / 0.01 and 3 < len(calls) - 2 <= 7
