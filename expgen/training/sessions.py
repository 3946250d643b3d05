"""Session: when a process worked on a run, for how long, and at which commit.

A run's journal has one session per process. A checkpoint stores the sessions of its policy, so that a policy keeps its
history when another run continues from it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Session(NamedTuple):
    """A period of work by one process."""

    began: float  # Unix time
    seconds: float
    commit: str


def total_seconds(sessions: Iterable[Session]) -> float:
    """Return the seconds covered by `sessions`; overlapping sessions count once."""
    total, until = 0.0, float("-inf")
    for began, seconds, _ in sorted(sessions):
        end = began + seconds
        total += max(0.0, end - max(began, until))
        until = max(until, end)
    return total


def commits_of(sessions: Iterable[Session]) -> list[str]:
    """Return each commit once, in the order of the sessions."""
    return list(dict.fromkeys(session.commit for session in sorted(sessions)))


def sessions_in(facts: Mapping[str, Any]) -> list[Session]:
    """Return the sessions that trained a checkpoint, from its `facts`."""
    return [Session(float(began), float(seconds), str(commit)) for began, seconds, commit in facts.get("sessions", ())]
