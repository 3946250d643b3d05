"""How long sessions took together, and at which commits."""

import pytest

from expgen.training.sessions import Session, commits_of, sessions_in, total_seconds


@pytest.mark.parametrize(
    ("sessions", "seconds"),
    [
        ([], 0),
        ([(100, 10), (100, 8)], 10),  # side by side
        ([(100, 10), (200, 10)], 20),  # one after the other
        ([(100, 10), (105, 10)], 15),  # partly
        ([(100, 50), (110, 10), (130, 30)], 60),  # one inside another
    ],
)
def test_sessions_side_by_side_count_once(sessions: list[tuple[float, float]], seconds: float) -> None:
    assert total_seconds(Session(*session, "a") for session in reversed(sessions)) == seconds


def test_commits_come_in_the_order_of_their_sessions() -> None:
    assert commits_of([Session(300, 1, "a"), Session(200, 1, "b"), Session(100, 1, "a")]) == ["a", "b"]


def test_a_checkpoint_tells_the_sessions_that_trained_it() -> None:
    assert sessions_in({"env_steps": 1, "sessions": [[100, 10, "a"]]}) == [Session(100, 10, "a")]
    assert sessions_in({"env_steps": 1}) == []
