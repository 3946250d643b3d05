"""The example environments train, evaluate and play from the command line, and their levels are reproducible."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import expgen

EXAMPLES = Path(expgen.__file__).parents[1] / "examples"
ENVS = [("own_env", "gridworld", "gymnasium"), ("crafter_env", "crafter", "crafter")]


@pytest.mark.parametrize(("file", "env", "package"), ENVS)
def test_example_environment_trains_evaluates_and_plays(
    file: str, env: str, package: str, small: Any, tmp_path: Path, command: Callable[..., Any]
) -> None:
    pytest.importorskip(package)
    import_flag = ("--import", EXAMPLES / f"{file}.py")
    flags = small.flags(tmp_path / "run", 1, levels="5", encoder="small")
    short = ("--option", "length=20") if env == "crafter" else ()
    result = command(*flags, "--env", env, *short, *import_flag)
    assert result.status == 0, result.err
    assert command("evaluate", tmp_path / "run", "--episodes", 2, *import_flag).status == 0
    assert command("play", tmp_path / "run", "--out", tmp_path / "episode.gif", *import_flag).status == 0
    seen = [expgen.make_env(env, levels=(level,), num_envs=1).observe().obs.copy() for level in (3, 3, 4)]
    assert np.array_equal(seen[0], seen[1]) and not np.array_equal(seen[0], seen[2])


@pytest.mark.parametrize("file", [file for file, *_ in ENVS])
def test_example_environment_shows_its_train_command(file: str) -> None:
    assert f"expgen train --import examples/{file}.py" in (EXAMPLES / f"{file}.py").read_text()


def test_minigrid_trains_by_id_with_its_image_wrapper(small: Any, tmp_path: Path, command: Callable[..., Any]) -> None:
    pytest.importorskip("minigrid")
    env_flags = ("--env", "MiniGrid-FourRooms-v0", "--import", "minigrid")
    plain = command(*small.flags(tmp_path / "plain", 1), *env_flags)
    assert plain.status == 2 and "with observations Dict(" in plain.err and len(plain.err.splitlines()) == 1
    run = tmp_path / "run"
    wrapper = ("--wrapper", "minigrid.wrappers:ImgObsWrapper")
    assert command(*small.flags(run, 1, algo="maxent", minibatches=2), *env_flags, *wrapper).status == 0
    assert command("evaluate", run, "--episodes", 2, "--import", "minigrid").status == 0
    assert command("play", run, "--out", tmp_path / "episode.html", "--import", "minigrid").status == 0
    page = (tmp_path / "episode.html").read_text()
    assert "pickup" in page  # MiniGrid's names of the actions


@pytest.mark.skipif(
    importlib.util.find_spec("envpool") is None, reason="EnvPool is missing: pip install expgen[envpool]"
)
def test_envpool_atari_stacks_four_frames_as_channels() -> None:
    env = expgen.make_env("envpool:Pong-v5", num_envs=2)
    assert env.spec.obs_shape == (84, 84, 4)
    for _ in range(8):
        env.act(np.full(2, 2, dtype=np.int32))
        before, seen = env.observe().obs[..., -1].copy(), env.observe().obs
        assert seen.shape == (2, 84, 84, 4)
    env.act(np.full(2, 2, dtype=np.int32))
    assert np.array_equal(env.observe().obs[..., -2], before)  # the newest frame is the last channel
    env.close()
