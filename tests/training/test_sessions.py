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


@pytest.mark.parametrize("name", ["sessions", "stints"])
def test_sessions_of_a_checkpoint_are_read_under_the_name_of_earlier_versions_too(name: str) -> None:
    assert sessions_in({"env_steps": 1, name: [[100, 10, "a"]]}) == [Session(100, 10, "a")]
    assert sessions_in({"env_steps": 1}) == []
