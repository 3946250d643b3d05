"""How long stints took together, and whose code they ran."""

import pytest

from expgen.training.stints import Stint, commits_of, covered_seconds


@pytest.mark.parametrize(
    ("stints", "seconds"),
    [
        ([], 0),
        ([(100, 10), (100, 8)], 10),  # side by side
        ([(100, 10), (200, 10)], 20),  # one after the other
        ([(100, 10), (105, 10)], 15),  # partly
        ([(100, 50), (110, 10), (130, 30)], 60),  # one inside another
    ],
)
def test_what_ran_side_by_side_counts_once(stints: list[tuple[float, float]], seconds: float) -> None:
    assert covered_seconds(Stint(*stint, "a") for stint in reversed(stints)) == seconds


def test_commits_come_in_the_order_of_training() -> None:
    assert commits_of([Stint(300, 1, "a"), Stint(200, 1, "b"), Stint(100, 1, "a")]) == ["a", "b"]
