"""Session: when work on a run began, how long it took and which commit did it.

A run's journal has one for each process that worked on it. A checkpoint has those of its policy, so that a policy
takes its history along when another run goes on from it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Session(NamedTuple):
    """One stretch of work by one process."""

    began: float  # Unix time
    seconds: float
    commit: str


def total_seconds(sessions: Iterable[Session]) -> float:
    """How long any of `sessions` was under way: those side by side count once."""
    total, until = 0.0, float("-inf")
    for began, seconds, _ in sorted(sessions):
        end = began + seconds
        total += max(0.0, end - max(began, until))
        until = max(until, end)
    return total


def commits_of(sessions: Iterable[Session]) -> list[str]:
    """Each commit once, in the order in which they worked."""
    return list(dict.fromkeys(session.commit for session in sorted(sessions)))


def sessions_in(facts: Mapping[str, Any]) -> list[Session]:
    """The sessions that trained a checkpoint, from its `facts`."""
    return [Session(float(began), float(seconds), str(commit)) for began, seconds, commit in facts.get("sessions", ())]
