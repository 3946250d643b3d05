"""Stints: when, for how long and by which code a policy was trained. Checkpoints carry them, so a kill loses none."""

from collections.abc import Iterable
from typing import NamedTuple


class Stint(NamedTuple):
    """One learner's part of one sitting."""

    began: float  # Unix time
    seconds: float
    commit: str


def covered_seconds(stints: Iterable[Stint]) -> float:
    """How long any of them was under way: what ran side by side counts once."""
    covered, until = 0.0, float("-inf")
    for began, seconds, _ in sorted(stints):
        end = began + seconds
        covered += max(0.0, end - max(began, until))
        until = max(until, end)
    return covered


def commits_of(stints: Iterable[Stint]) -> list[str]:
    """Each once, in the order in which they trained."""
    return list(dict.fromkeys(stint.commit for stint in sorted(stints)))
