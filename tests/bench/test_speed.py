"""Rates, and lines with the share of the upper bound that each figure reaches."""

from types import SimpleNamespace

import pytest

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


def test_rate_ignores_the_first_call_and_counts_at_least_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[float] = []
    monkeypatch.setattr("expgen.bench.speed.time", SimpleNamespace(perf_counter=lambda: sum(seconds)))

    def work() -> int:
        seconds.append(0.25)
        return 5

    assert rate(work, 1e-9) == 20 and len(seconds) == 2
    assert rate(work, 1.0) == 20 and len(seconds) == 2 + 1 + 4
