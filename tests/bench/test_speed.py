"""Speeds in words: what part of its limit each reaches."""

from expgen.bench.speed import Speed, shares


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
