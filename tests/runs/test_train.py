"""train: levels, environments without levels, and several runs in turn."""

from pathlib import Path
from typing import Any

import pytest

import expgen
from expgen.errors import InputError
from expgen.evaluation.scores import read_scores
from expgen.runs.agent_files import read_agent
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import RunRequest
from expgen.runs.request import EvaluationRequest, score_all
from expgen.runs.status import run_status
from expgen.runs.train import train_runs
from expgen.training.loop import Watcher


def test_levels_from_python_are_resumed(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1, levels=range(10, 20), test_levels=[3])
    assert small.train(tmp_path, 2, levels=range(10, 20), test_levels=[3], resume=True).config.levels == "10:10"
    expgen.load_agent(tmp_path)


def test_envpool_task_without_levels_trains_and_is_scored(small: Any, tmp_path: Path) -> None:
    pytest.importorskip("envpool", reason="EnvPool is an optional extra")
    changes = {"env": "envpool:CartPole-v1", "levels": "all", "eval_every": small.update_steps}
    assert small.train(tmp_path / "run", 1, **changes).is_complete
    assert [row.split for row in read_scores(tmp_path / "run" / "scores.csv")] == ["train"]
    with pytest.raises(InputError, match="has no unseen levels; accepted: --split train"):
        next(score_all(read_agent(tmp_path / "run"), EvaluationRequest()))


def test_run_started_by_another_process_before_its_turn_is_refused(small: Any, tmp_path: Path) -> None:
    settings = {name: value for name, value in small.settings.items() if name not in ("preset", "device")}
    asked = {"settings": {**settings, "steps": small.update_steps}, "preset": "smoke"}
    first, second = (RunRequest(run=tmp_path / name, **asked) for name in ("first", "second"))

    def begin_the_second(learner: str, row: dict[str, float]) -> None:
        small.train(tmp_path / "second", 1, gamma=0.5)

    with pytest.raises(InputError, match="second already has a run; accepted: --resume, or another folder"):
        train_runs([first, second], "cpu", watcher=Watcher(on_row=begin_the_second))
    assert run_status(tmp_path / "first").state == run_status(tmp_path / "second").state == "done"
    assert RunFolder(tmp_path / "second").read_config()[0].algorithm.gamma == 0.5
