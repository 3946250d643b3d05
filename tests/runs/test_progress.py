"""Progress: a bar on a terminal, plain lines elsewhere."""

import io
import re
import sys

import pytest

from expgen.evaluation.evaluate import Episode
from expgen.runs import progress
from expgen.runs.progress import EpisodeMeans, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_progress_line_has_steps_rate_time_left_and_scores(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    watch = Progress()
    watch.start(4000, {})
    watch.row("member0", {"env_steps": 500, "episode_return": 1.0})
    clock[0] += 5
    watch.row("member1", {"env_steps": 500, "episode_return": 2.0})  # too soon for another line
    clock[0] += 5
    watch.row("member0", {"env_steps": 1000, "episode_return": 3.0, "episode_solved": 0.25})
    watch.close()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and lines[0] == "500/4,000 steps  return 1.00"  # the rate is not known yet
    assert re.sub(" +", " ", lines[1]) == "1,500/4,000 steps 100 steps/s 25 s left return 2.50 solved 0.25"


def test_progress_shows_return_once_as_many_episodes_ended_as_there_are_environments(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    watch = Progress()
    watch.start(4000, {})
    for env_steps, episodes in ((500, 3), (1000, 7), (1500, 8)):
        row = {"env_steps": env_steps, "episodes": episodes, "envs": 8, "episode_return": 10.0, "episode_solved": 1.0}
        watch.row("member0", row)
        clock[0] += 10
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "500/4,000 steps" and lines[1].endswith("s left") and "return" not in lines[1]
    assert lines[2].endswith("return 10.00 solved 1.00")


def test_progress_shows_scores_by_kind_of_learner(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    watch = Progress()
    watch.start(10**9, {"a/member0": 0, "a/member1": 0, "a/explorer": 0})
    watch.row("a/member0", {"env_steps": 1000, "episode_return": 2.0})
    watch.row("a/explorer", {"env_steps": 3000, "episode_return": 9.0, "test_return": 1.0, "test_oracle_share": 0.75})
    clock[0] += 10
    watch.row("a/member1", {"env_steps": 1000, "episode_return": 4.0})
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.endswith("members 2.00k: return 3.00 | explorer 3.00k: return 9.00 test 1.00 covers 0.75")
    assert "694.4 h left" in line  # a billion steps at 400 a second


def test_progress_always_shows_scores_and_the_end(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    watch = Progress()
    watch.start(300, {})
    watch.row("member0", {"env_steps": 100})
    watch.row("member0", {"env_steps": 200, "train_return": 8.0, "test_return": 6.5})
    watch.row("member0", {"env_steps": 300})
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and "train 8.00 test 6.50" in lines[1] and lines[2].startswith("300/300 steps")


def test_progress_of_episodes_starts_after_a_delay(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    watch = Progress("episode")
    watch.start(8, {})
    watch.row("agent", {"episodes": 1, "episode_return": 4.0, "episode_solved": 0.5})
    assert capsys.readouterr().err == ""
    clock[0] += 10
    watch.row("agent", {"episodes": 6, "episode_return": 5.0, "episode_solved": 0.5})
    watch.row("agent", {"episodes": 8, "episode_return": 5.0, "episode_solved": 0.5})
    line = capsys.readouterr().err.strip()
    assert re.sub(" +", " ", line) == "6/8 episodes 0.6 episodes/s 3 s left return 5.00 solved 0.50"


def test_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    watch = Progress()
    watch.start(1000, {})
    watch.row("member0", {"env_steps": 500, "episode_return": 3.0})
    watch.bar.refresh()
    watch.row("member1", {"env_steps": 500, "test_return": 2.5})
    watch.close()
    shown = terminal.getvalue()
    assert watch.bar.n == 1000 and "50%" in shown and "100%" in shown and "return 3.00 test 2.50" in shown
    assert "step/s" in shown and "\n" not in shown.rstrip("\n")


def test_hidden_bar_returns_with_the_next_row(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    watch = Progress("episode")
    watch.start(4, {})
    watch.row("agent", {"episodes": 1})
    watch.hide_bar()
    last = terminal.getvalue().rpartition("\r")
    assert last[2] == "" and last[0].rpartition("\r")[2].strip() == ""  # spaces over the bar, then the line's start
    watch.row("agent", {"episodes": 4, "episode_return": 2.0})
    watch.bar.refresh()
    assert "4.00/4.00" in terminal.getvalue() and "return 2.00" in terminal.getvalue()
    watch.close()


def test_progress_counts_steps_of_earlier_sessions(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    watch = Progress()
    watch.start(4000, {"member0": 1500, "member1": 2000})  # member1 is done and reports no rows
    watch.row("member0", {"env_steps": 2000})
    assert capsys.readouterr().err.startswith("4,000/4,000 steps")


def test_episode_means_leave_out_episodes_after_an_unfinished_one() -> None:
    rows: list[dict[str, float]] = []
    means = EpisodeMeans("member0", lambda player, row: rows.append(row))
    for number, episode_return in ((1, 10.0), (2, 10.0), (0, 1.0), (1, 4.0), (0, 5.0)):  # the last two: a second list
        means(Episode(7, episode_return, 5, solved=episode_return == 10, number=number))
    assert rows == [
        {"episodes": 1},
        {"episodes": 2},
        {"episodes": 3, "episode_return": 7.0, "episode_solved": 2 / 3},
        {"episodes": 4, "episode_return": 7.0, "episode_solved": 2 / 3},
        {"episodes": 5, "episode_return": 6.0, "episode_solved": 0.4},
    ]


def test_restarted_progress_counts_from_zero(capsys: pytest.CaptureFixture[str]) -> None:
    watch = Progress()
    for total in (100, 200):
        watch.start(total, {})
        watch.row("member0", {"env_steps": total})
    watch.close()
    watch.close()  # a second call does nothing
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["100/100", "200/200"]


def test_when_stopping_has_the_time_of_the_slowest_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    watch = Progress()
    what = "when every learner has finished its rollout and update and written a checkpoint"
    assert watch.when_stopping() == f"{what}, which can take minutes"  # no learner has two rows yet
    watch.start(9000, {})
    for now[0], learner in ((1, "member0"), (2, "explorer"), (6, "member0")):
        watch.row(learner, {"env_steps": int(now[0])})
    assert watch.when_stopping() == f"{what}, about 5 s"
    now[0] = 402
    watch.row("explorer", {"env_steps": 10})
    assert watch.when_stopping() == f"{what}, about 6.7 min"
    now[0] = 403
    watch.row("explorer", {"env_steps": 10, "test_return": 1.0})  # a score that arrives late is no update
    assert watch.when_stopping() == f"{what}, about 6.7 min"
