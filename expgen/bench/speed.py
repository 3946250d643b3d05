"""Speed: one measured throughput as a row, and what part of its limit it reaches."""

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

FLOOR = "arithmetic alone"  # steps per second if training were one large matrix product,
UPDATE_FLOOR = "update's arithmetic alone"  # and if updating were


@dataclass(frozen=True)
class Speed:
    """A row of results/speed.csv."""

    what: str
    game: str
    learners: int
    steps_per_s: int
    hardware: str
    commit: str
    date: str


COLUMNS = tuple(field.name for field in dataclasses.fields(Speed))


def rate(work: Callable[[], float], seconds: float) -> float:
    """How much is done a second, by what `work` says it did: after a first call, which warms up, at least once."""
    work()
    began, done = time.perf_counter(), 0.0
    while not done or time.perf_counter() - began < seconds:
        done += work()
    return done / (time.perf_counter() - began)


def shares(rows: list[Speed]) -> Iterator[str]:
    """What part of the fastest conceivable each figure of learning reaches, in words."""
    known = {row.what: row.steps_per_s for row in rows if row.learners == 1}
    floor, games, updating = known[FLOOR], known["environment"], known[UPDATE_FLOOR]
    yield f"update: {known['update'] / updating:.1%} of its arithmetic alone ({updating:,} steps/s)"
    for row in rows:
        if row.what == "training":
            what, limit = min((FLOOR, floor), ("the environment alone", games), key=lambda pair: pair[1])
            yield f"training, learners {row.learners}: {row.steps_per_s / limit:.1%} of {what} ({limit:,} steps/s)"
