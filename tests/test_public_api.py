"""The Python of product.md, with a run folder for a bundled agent."""

import subprocess
import sys
from pathlib import Path

import pytest

import expgen


def test_the_snippet(tmp_path: Path) -> None:
    settings = {"steps": 512, "envs": 8, "rollout_steps": 16, "minibatches": 2, "features": 16, "levels": 20}
    run = expgen.train("minimaze", algo="ppo", preset="smoke", run=tmp_path / "run", device="cpu", **settings)
    assert run.is_complete and run.diverged == () and run.folder.path == tmp_path / "run"
    agent = expgen.load_agent(tmp_path / "run")
    env = expgen.make_env("minimaze", levels=range(1000, 1200), num_envs=16)
    scores = expgen.evaluate(agent, env, episodes=50)
    assert scores.ci_low <= scores.mean_return <= scores.ci_high and 0 <= scores.solved_rate <= 1
    assert len(scores.episodes) == 50 and all(1000 <= episode.level < 1200 for episode in scores.episodes)
    assert scores.mean_return == pytest.approx(10 * scores.solved_rate)


def test_every_public_name_is_there() -> None:
    assert {"load_agent", "make_env", "evaluate", "train", "InputError", "LevelSet"} <= set(expgen.__all__)
    for name in expgen.__all__:
        assert getattr(expgen, name).__name__ == name and name in dir(expgen)
    with pytest.raises(AttributeError, match="module 'expgen' has no attribute 'fly'"):
        expgen.fly  # noqa: B018
    namespace: dict[str, object] = {}
    exec("from expgen import *", namespace)
    assert set(expgen.__all__) <= namespace.keys()


def test_names_are_imported_when_asked_for() -> None:
    code = "import sys, expgen; assert 'torch' not in sys.modules; expgen.train; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_bad_input_is_an_input_error_and_a_value_error() -> None:
    with pytest.raises(expgen.InputError, match="--algo is 'a3c'"):
        expgen.train(algo="a3c")
    assert issubclass(expgen.InputError, ValueError)
