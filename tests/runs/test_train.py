"""What a run is trained and scored on."""

from pathlib import Path
from typing import Any

import pytest

import expgen
from expgen.errors import InputError
from expgen.evaluation.scores import read_scores
from expgen.runs.agent_files import read_agent
from expgen.runs.request import EvaluationRequest, score_all


def test_levels_from_python_survive_the_run_folder(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1, levels=range(10, 20), test_levels=[3])
    assert small.train(tmp_path, 2, levels=range(10, 20), test_levels=[3], resume=True).config.levels == "10:10"
    expgen.load_agent(tmp_path)


def test_a_task_without_levels_trains_and_is_scored_on_what_it_plays(small: Any, tmp_path: Path) -> None:
    pytest.importorskip("envpool", reason="EnvPool is an optional extra")
    changes = {"env": "envpool:CartPole-v1", "levels": "all", "eval_every": small.update_steps}
    assert small.train(tmp_path / "run", 1, **changes).is_complete
    assert [row.split for row in read_scores(tmp_path / "run" / "scores.csv")] == ["train"]
    with pytest.raises(InputError, match="has no levels to leave unseen; accepted: --split train"):
        next(score_all(read_agent(tmp_path / "run"), EvaluationRequest()))
