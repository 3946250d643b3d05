"""Speed: one measured throughput as a row, and its share of the upper bound."""

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

PEAK = "arithmetic alone"  # steps per second if training ran at the speed of one large matrix product
UPDATE_PEAK = "update's arithmetic alone"  # the same for updates without acting


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
    """Return the work per second of calling `work`, which returns how much it did; the first call is a warm-up."""
    work()
    began, done = time.perf_counter(), 0.0
    while not done or time.perf_counter() - began < seconds:
        done += work()
    return done / (time.perf_counter() - began)


def shares(rows: list[Speed]) -> Iterator[str]:
    """Yield lines with the share of its upper bound that each figure reaches."""
    known = {row.what: row.steps_per_s for row in rows if row.learners == 1}
    peak, games, update_peak = known[PEAK], known["environment"], known[UPDATE_PEAK]
    yield f"update: {known['update'] / update_peak:.1%} of its arithmetic alone ({update_peak:,} steps/s)"
    for row in rows:
        if row.what == "training":
            what, limit = min((PEAK, peak), ("the environment alone", games), key=lambda pair: pair[1])
            yield f"training, learners {row.learners}: {row.steps_per_s / limit:.1%} of {what} ({limit:,} steps/s)"
