"""Total seconds and commits of sessions."""

import pytest

from expgen.training.sessions import Session, commits_of, sessions_in, total_seconds


@pytest.mark.parametrize(
    ("sessions", "seconds"),
    [
        ([], 0),
        ([(100, 10), (100, 8)], 10),  # overlapping
        ([(100, 10), (200, 10)], 20),  # one after the other
        ([(100, 10), (105, 10)], 15),  # partly overlapping
        ([(100, 50), (110, 10), (130, 30)], 60),  # one inside another
    ],
)
def test_overlapping_sessions_count_once(sessions: list[tuple[float, float]], seconds: float) -> None:
    assert total_seconds(Session(*session, "a") for session in reversed(sessions)) == seconds


def test_commits_are_in_the_order_of_their_sessions() -> None:
    assert commits_of([Session(300, 1, "a"), Session(200, 1, "b"), Session(100, 1, "a")]) == ["a", "b"]


def test_sessions_are_read_from_checkpoint_facts() -> None:
    assert sessions_in({"env_steps": 1, "sessions": [[100, 10, "a"]]}) == [Session(100, 10, "a")]
    assert sessions_in({"env_steps": 1}) == []
