"""What is told of work, and of episodes one by one."""

import pytest

from expgen.evaluation.evaluate import Episode
from expgen.runs import progress
from expgen.runs.watch import SoFar, Watch
from expgen.training.life import Watcher


def test_each_episode_tells_the_means_so_far() -> None:
    told: list[tuple[str, dict[str, float]]] = []
    so_far = SoFar("member0", Watcher(on_row=lambda who, row: told.append((who, row))))
    so_far(Episode(level=1, episode_return=10.0, length=5, solved=True))
    so_far(Episode(level=2, episode_return=0.0, length=9, solved=False))
    assert told == [
        ("member0", {"episodes": 1, "episode_return": 10.0, "episode_solved": 1.0}),
        ("member0", {"episodes": 2, "episode_return": 5.0, "episode_solved": 0.5}),
    ]


def test_work_that_begins_again_is_counted_anew(capsys: pytest.CaptureFixture[str]) -> None:
    watch = Watch()
    for total in (100, 200):
        watch.start(total, {})
        watch.row("member0", {"env_steps": total})
    watch.close()
    watch.close()  # nothing is open any more
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["100/100", "200/200"]


def test_a_stop_is_as_far_away_as_the_slowest_learners_round(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    watch = Watch()
    what = "when every learner has finished its rollout and update and written a checkpoint"
    assert watch.still_to_do() == what
    watch.start(9000, {})
    for now[0], learner in ((1, "member0"), (2, "explorer"), (6, "member0")):
        watch.row(learner, {"env_steps": int(now[0])})
    assert watch.still_to_do() == f"{what}, about 5 s"
    now[0] = 402
    watch.row("explorer", {"env_steps": 10})
    assert watch.still_to_do() == f"{what}, about 6.7 min"
