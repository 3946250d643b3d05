"""The public Python API."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch

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


def test_every_public_name_exists() -> None:
    assert {"load_agent", "make_env", "evaluate", "train", "InputError", "LevelSet"} <= set(expgen.__all__)
    for name in expgen.__all__:
        assert getattr(expgen, name).__name__ == name and name in dir(expgen)
    with pytest.raises(AttributeError, match="module 'expgen' has no attribute 'fly'"):
        expgen.fly  # noqa: B018
    namespace: dict[str, object] = {}
    exec("from expgen import *", namespace)
    assert set(expgen.__all__) <= namespace.keys()


def test_version_is_that_of_the_installed_package() -> None:
    assert expgen.__version__ == metadata.version("expgen") and expgen.__version__[0].isdigit()


def test_public_names_are_imported_lazily() -> None:
    code = "import sys, expgen; assert 'torch' not in sys.modules; expgen.train; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("agent", ["minimaze/expgen", "minimaze/ppo"])
def test_evaluate_rejects_an_environment_that_does_not_fit_the_agent(agent: str) -> None:
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


def test_evaluate_accepts_environment_names_but_not_agent_names() -> None:
    maze = expgen.make_env("minimaze", levels=5, num_envs=2)
    with pytest.raises(
        expgen.InputError, match="agent is 'minimaze/expgen'; accepted: an agent, for example from load_agent"
    ):
        expgen.evaluate("minimaze/expgen", maze)  # type: ignore[arg-type]
    agent = expgen.load_agent("minimaze/ppo")
    by_name = expgen.evaluate(agent, "minimaze", episodes=4, levels=range(1000, 1200))
    made = expgen.make_env("minimaze", levels=range(1000, 1200), num_envs=4)
    assert by_name == expgen.evaluate(expgen.load_agent("minimaze/ppo"), made, episodes=4)
    with pytest.raises(expgen.InputError, match="levels is given but env is an environment already"):
        expgen.evaluate(agent, made, levels=5)


def test_bad_input_is_an_input_error_and_a_value_error() -> None:
    with pytest.raises(expgen.InputError, match="--algo is 'a3c'"):
        expgen.train(algo="a3c")
    assert issubclass(expgen.InputError, ValueError)


@pytest.mark.parametrize(
    ("asked", "policy", "spins"),
    [
        ({}, "PASSIVE", "1000"),
        ({"OMP_WAIT_POLICY": "passive"}, "PASSIVE", "0"),
        ({"OMP_WAIT_POLICY": "active"}, "ACTIVE", "30000000000"),
        ({"GOMP_SPINCOUNT": "5"}, "PASSIVE", "5"),
    ],
    ids=str,
)
def test_openmp_threads_spin_briefly_by_default(asked: dict[str, str], policy: str, spins: str) -> None:
    env = {name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    env |= {"OMP_DISPLAY_ENV": "verbose", **asked}  # OpenMP prints its settings
    done = subprocess.run([sys.executable, "-c", "import expgen, torch"], env=env, capture_output=True, text=True)
    assert f"OMP_WAIT_POLICY = '{policy}'" in done.stderr, done.stderr
    assert f"GOMP_SPINCOUNT = '{spins}'" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expgen.make_env("minimaze", num_envs=2.0), "num_envs is 2.0; accepted: a whole number"),
        (lambda: expgen.make_env("minimaze", seed="0"), "seed is '0'; accepted: a whole number"),
        (lambda: expgen.make_env("minimaze", threads=None), "threads is None; accepted: a whole number"),
        (lambda: expgen.make_env("minimaze", full_view="no"), "full_view is 'no'; accepted: True or False"),
        (lambda: expgen.make_env("minimaze", levels=np.array("x")), "levels is .*; accepted: whole numbers"),
        (lambda: expgen.load_agent(None), "run is None; accepted: a run folder"),
        (lambda: expgen.load_agent("a\0b"), "run is .*; accepted: a run folder"),
        (lambda: expgen.load_agent(""), "run is ''; accepted: a run folder"),
        (lambda: expgen.diagnose(3), "run is 3; accepted: a run folder"),
        (lambda: expgen.train(algo=""), "--algo is ''; accepted: ppo"),
        (lambda: expgen.train(run=""), "run is ''; accepted: a folder or URL"),
        (lambda: expgen.train(run="s3://"), "s3:/* has no path; accepted: a folder, or a URL"),
        (lambda: expgen.load_agent("minimaze/ppo", learner=0), "learner is 0; accepted: a name such as member0"),
        (lambda: expgen.load_agent("minimaze/ppo", learner=""), "--learner is ''; accepted: member0, "),
        (lambda: expgen.load_agent("minimaze/ppo", seed=1.5), "seed is 1.5; accepted: a whole number"),
        (lambda: expgen.load_agent("minimaze/ppo", device=0), "--device is 0; accepted: auto, cpu"),
        (lambda: expgen.load_agent("minimaze/ppo", weights=["live"]), "weights is .*; accepted: live, average"),
        (lambda: expgen.train(algo=["ppo"]), r"algo is \['ppo'\]; accepted: a name"),
        (lambda: expgen.train(run=3), "run is 3; accepted: a folder or URL"),
        (lambda: expgen.train(resume="yes"), "resume is 'yes'; accepted: True or False"),
        (lambda: expgen.train(processes=1.5), "--processes is 1.5; accepted: auto, or 1 to 1024"),
        (lambda: expgen.train(hang_seconds="soon"), "--hang-seconds is 'soon'; accepted: seconds"),
        (lambda: expgen.train(options=[1]), r"options is \[1\]; accepted: a dictionary"),
        (lambda: expgen.train(gamma=np.array([0.9, 0.99])), "--gamma is .*; accepted: text or a number"),
        (lambda: expgen.train(members=10**9), "--members is 1000000000; accepted: 1 to 10000"),
    ],
)
def test_wrong_arguments_raise_one_line_errors(call: Callable[[], object], message: str) -> None:
    with pytest.raises(expgen.InputError, match=message) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_numpy_numbers_torch_devices_and_level_lists_are_accepted(tmp_path: Path) -> None:
    env = expgen.make_env("minimaze", levels=[3, 4], num_envs=np.int64(2), seed=np.int32(1))
    agent = expgen.load_agent("minimaze/ppo", seed=np.uint8(3), device=torch.device("cpu"))
    assert len(expgen.evaluate(agent, env, episodes=np.int64(2)).episodes) == 2
    settings = {"steps": np.int64(32), "envs": np.int32(4), "rollout_steps": 8, "minibatches": 1, "features": 8}
    levels = {"levels": np.arange(20), "eval_every": 0, "gamma": np.float64(0.5), "device": torch.device("cpu")}
    run = expgen.train(run=tmp_path / "run", preset="smoke", **settings, **levels)
    assert run.is_complete and run.config.envs == 4 and len(run.config.train_set) == 20
