"""Resumed runs: they may get more steps or members; other changes are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expgen
from expgen.errors import InputError
from expgen.evaluation.scores import read_scores
from expgen.runs.folder import RunFolder
from tests.runs.rows import by_learner, metrics


def test_resuming_a_finished_run_changes_nothing(small: Any, equal: Callable[..., bool], tmp_path: Path) -> None:
    small.train(tmp_path, eval_every=10**9)
    state, rows, scores = small.state(tmp_path), metrics(tmp_path), read_scores(tmp_path / "scores.csv")
    assert small.train(tmp_path, eval_every=10**9, resume=True).is_complete
    assert equal(state, small.state(tmp_path)) and rows == metrics(tmp_path)
    assert scores == read_scores(tmp_path / "scores.csv")


def test_resume_can_add_steps_and_members(small: Any, equal: Callable[..., bool], tmp_path: Path) -> None:
    small.train(tmp_path / "long", 6, members=2)
    small.train(tmp_path / "grown", 3)
    result = small.train(tmp_path / "grown", 6, members=2, resume=True)
    assert result.is_complete and result.config.members == 2
    for learner in ("member0", "member1"):
        assert equal(small.state(tmp_path / "long", learner), small.state(tmp_path / "grown", learner))
    assert by_learner(tmp_path / "grown") == by_learner(tmp_path / "long")
    config, _ = RunFolder(tmp_path / "grown").read_config()
    assert (config.members, config.steps) == (2, 6 * small.update_steps)


def test_resume_without_a_run_starts_one(small: Any, tmp_path: Path) -> None:
    assert small.train(tmp_path / "new", 1, resume=True).is_complete


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resume": False}, "--run .* already has a run; accepted: --resume, or another folder"),
        ({"steps": 128}, "--steps is 128; accepted for this run: 256 or more"),
        ({"members": 1}, "--members is 1; accepted for this run: 2 or more"),
        ({"seed": 1}, "--seed is 1 but .* has 0; accepted with --resume: more steps or members"),
        ({"gamma": 0.5}, "--gamma is 0.5 but .* has 0.99"),
        ({"algo": "ppo-gru"}, "--algo is ppo-gru but .* has ppo;"),
        ({"env": "gymnasium:CartPole-v1"}, "--env is gymnasium:CartPole-v1 but .* has minimaze;"),
        ({"options": {"texture": 0}}, "--options is "),
        ({"levels": "0:20"}, "--levels is 0:20 but .* has 20;"),
        ({"gama": 0.5}, "setting 'gama' is unknown"),
    ],
)
def test_resume_with_other_settings_is_refused_and_changes_nothing(
    changes: dict[str, Any], message: str, two: Path, small: Any, equal: Callable[..., bool]
) -> None:
    config, before = (two / "config.json").read_bytes(), small.state(two)
    with pytest.raises(InputError, match=message):
        small.train(two, **{"updates": 2, "members": 2, "resume": True, **changes})
    assert (two / "config.json").read_bytes() == config and equal(before, small.state(two))


@pytest.fixture(scope="module")
def two(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "two"
    small.train(run, 2, members=2)
    return run


def test_default_folder_is_resumed(small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {**small.settings, "steps": 2 * small.update_steps}
    assert expgen.train(**settings).folder.path == Path("runs/minimaze-ppo-seed0")
    with pytest.raises(InputError, match="already has a run"):
        expgen.train(**settings)
    assert expgen.train(**settings, resume=True).is_complete
