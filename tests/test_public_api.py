"""The Python of product.md, with a run folder for a bundled agent."""

import dataclasses
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import expgen


def test_readme_python_snippet_runs(tmp_path: Path) -> None:
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


def test_the_version_is_that_of_the_installed_package() -> None:
    assert expgen.__version__ == metadata.version("expgen") and expgen.__version__[0].isdigit()


def test_names_are_imported_when_asked_for() -> None:
    code = "import sys, expgen; assert 'torch' not in sys.modules; expgen.train; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("agent", ["minimaze/expgen", "minimaze/ppo"])
def test_an_agent_and_an_environment_that_do_not_fit_are_refused(agent: str) -> None:
    player = expgen.load_agent(agent)
    maze = expgen.make_env("minimaze", levels=5, num_envs=2)
    spec = maze.spec
    for other, what in (
        (dataclasses.replace(spec, obs_shape=(4,)), r"observations \(4,\) uint8 and 5 actions"),
        (dataclasses.replace(spec, num_actions=3), "observations .* and 3 actions"),
        (dataclasses.replace(spec, obs_dtype="float32"), "observations .* float32 and 5 actions"),
    ):
        maze.spec = other
        fits = "accepted by this agent of minimaze: observations .* uint8 and 5 actions"
        with pytest.raises(expgen.InputError, match=f"env is 'minimaze' with {what}; {fits}"):
            expgen.evaluate(player, maze, episodes=1)
    maze.spec = dataclasses.replace(spec, name="my own")
    assert len(expgen.evaluate(player, maze, episodes=1).episodes) == 1


def test_an_agent_s_name_is_refused_where_an_environment_s_will_do() -> None:
    maze = expgen.make_env("minimaze", levels=5, num_envs=2)
    with pytest.raises(expgen.InputError, match="agent is 'minimaze/expgen'; accepted: an agent, as load_agent"):
        expgen.evaluate("minimaze/expgen", maze)  # type: ignore[arg-type]
    agent = expgen.load_agent("minimaze/ppo")
    by_name = expgen.evaluate(agent, "minimaze", episodes=4, levels=range(1000, 1200))
    made = expgen.make_env("minimaze", levels=range(1000, 1200), num_envs=4)
    assert by_name == expgen.evaluate(expgen.load_agent("minimaze/ppo"), made, episodes=4)
    with pytest.raises(expgen.InputError, match="levels is given with an environment that is made"):
        expgen.evaluate(agent, made, levels=5)


def test_bad_input_is_an_input_error_and_a_value_error() -> None:
    with pytest.raises(expgen.InputError, match="--algo is 'a3c'"):
        expgen.train(algo="a3c")
    assert issubclass(expgen.InputError, ValueError)


@pytest.mark.parametrize(("asked", "policy"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "active"}, "ACTIVE")])
def test_torchs_threads_wait_passively_unless_told_otherwise(asked: dict[str, str], policy: str) -> None:
    env = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    env |= {"OMP_DISPLAY_ENV": "true", **asked}  # OpenMP then says what it has read
    told = subprocess.run([sys.executable, "-c", "import expgen, torch"], env=env, capture_output=True, text=True)
    assert f"OMP_WAIT_POLICY = '{policy}'" in told.stderr, told.stderr
