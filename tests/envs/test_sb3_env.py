"""Sb3VecEnv with PPO and evaluate_policy of Stable-Baselines3."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

sb3 = pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is missing: pip install 'expgen[sb3]'")

from stable_baselines3.common.evaluation import evaluate_policy  # noqa: E402
from stable_baselines3.common.vec_env import VecMonitor  # noqa: E402

from expgen.envs.library import is_installed  # noqa: E402
from expgen.envs.sb3_env import Sb3VecEnv  # noqa: E402
from expgen.errors import InputError  # noqa: E402

needs_procgen = [pytest.mark.procgen, pytest.mark.skipif(not is_installed(), reason="no ProcGen library")]
SMALL = {"max_cells": 2, "time_limit": 12}


def test_sb3_ppo_learns_small_mazes() -> None:
    env = Sb3VecEnv("minimaze", 16, levels=3, goal_reward=1.0, **SMALL)
    how = {"n_steps": 32, "batch_size": 128, "n_epochs": 4, "learning_rate": 1e-3, "seed": 0, "device": "cpu"}
    model = sb3.PPO("MlpPolicy", VecMonitor(env), **how)
    before, _ = evaluate_policy(model, env, 100, deterministic=False, warn=False)
    model.learn(16 * 32 * 12)
    after, _ = evaluate_policy(model, env, 100, deterministic=False, warn=False)
    assert after > before + 0.3 and len(model.ep_success_buffer) > 50


@needs_procgen[0]
@needs_procgen[1]
def test_sb3_ppo_trains_on_procgen() -> None:
    env = Sb3VecEnv("procgen:maze", 2, levels=3)
    model = sb3.PPO("CnnPolicy", env, n_steps=8, batch_size=16, n_epochs=1, device="cpu").learn(16)
    assert model.observation_space.shape == (3, 64, 64) and model.num_timesteps == 16


def test_sb3_env_reports_is_success_and_restarts_within_the_step() -> None:
    env = Sb3VecEnv("minimaze", 2, levels=[3], **SMALL)
    begin = env.reset()
    for _ in range(12):
        obs, reward, done, infos = env.step(np.zeros(2, dtype=np.int64))
    assert done.all() and infos == [{"is_success": False}] * 2 and not reward.any()
    np.testing.assert_array_equal(obs, begin)


def test_sb3_env_draws_valid_random_seeds() -> None:
    env = Sb3VecEnv("minimaze", 4)
    assert all(env.seed()[0] < 2**31 for _ in range(20))
    env.reset()


def test_sb3_env_seed_determines_levels() -> None:
    env = Sb3VecEnv("minimaze", 4)
    env.seed(3)
    one = env.reset()
    assert (env.reset() == one).all()
    env.step(np.zeros(4, dtype=np.int64))
    assert (env.reset() != one).any()
    env.seed(3)
    assert (env.reset() == one).all()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda env: env.step(np.zeros(3, dtype=int)), r"actions have shape \(3,\)"),
        (lambda env: env.step(np.array([0, 7])), "actions are 0 to 7; accepted: 0 to 4"),
        (
            lambda env: env.set_attr("levels", 3),
            "set_attr is not supported by Sb3VecEnv.*; set 'levels' when you make it",
        ),
        (
            lambda env: env.env_method("play", 3),
            "env_method is not supported by Sb3VecEnv.*; call 'play' of its .env",
        ),
        (lambda env: Sb3VecEnv("minimaze", 0), "num_envs is 0; accepted: 1 to 65536"),
        (lambda env: Sb3VecEnv("minimaze", levels="x"), "levels is 'x'"),
        (lambda env: Sb3VecEnv("minimaze", max_cells=1), "min_cells is 2; accepted: 2 to 1|max_cells is 1"),
        (lambda env: Sb3VecEnv("minimaze", texture="rough"), "texture is 'rough'; accepted: a value of type int"),
        (lambda env: Sb3VecEnv("minimaze", walls=3), "option 'walls' is unknown; accepted: "),
        (lambda env: Sb3VecEnv("chess"), "--env is 'chess'; accepted: "),
        (lambda env: env.step(0), r"actions have shape \(\), type int64; accepted: 2 whole numbers"),
        (lambda env: env.step(np.array([0.0, 1.0])), r"actions have shape \(2,\), type float64"),
        (lambda env: env.step(np.array([-1, 0])), "actions are -1 to 0; accepted: 0 to 4"),
        (lambda env: (env.seed(-3), env.reset()), "seed is -3; accepted: 0 to"),
    ],
)
def test_sb3_env_rejects_invalid_arguments(use: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        use(Sb3VecEnv("minimaze", 2, levels=20))
    assert "\n" not in str(refusal.value)


def test_missing_sb3_error_names_the_extra() -> None:
    code = "import sys; sys.modules['stable_baselines3'] = None\nimport expgen\ntry: import expgen.envs.sb3_env\n"
    code += "except expgen.InputError as error: print(error)"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said == "Sb3VecEnv needs Stable-Baselines3: pip install 'expgen[sb3]'\n"
