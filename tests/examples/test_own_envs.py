"""The example environments: levels are what they say; all are trained, scored and watched from the command line."""

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
def test_example_environment_from_the_command_line(
    file: str, env: str, package: str, small: Any, tmp_path: Path, command: Callable[..., Any]
) -> None:
    pytest.importorskip(package)
    named = ("--import", EXAMPLES / f"{file}.py")
    flags = small.flags(tmp_path / "run", 1, levels="5", encoder="small")
    short = ("--option", "length=20") if env == "crafter" else ()
    done = command(*flags, "--env", env, *short, *named)
    assert done.status == 0, done.err
    assert command("evaluate", tmp_path / "run", "--episodes", 2, *named).status == 0
    assert command("play", tmp_path / "run", "--out", tmp_path / "episode.gif", *named).status == 0
    seen = [expgen.make_env(env, levels=(level,), num_envs=1).observe().obs.copy() for level in (3, 3, 4)]
    assert np.array_equal(seen[0], seen[1]) and not np.array_equal(seen[0], seen[2])


@pytest.mark.parametrize("file", [file for file, *_ in ENVS])
def test_example_environment_has_forty_lines_at_most_and_says_how_to_train(file: str) -> None:
    text = (EXAMPLES / f"{file}.py").read_text()
    assert len(text.splitlines()) <= 40 and f"expgen train --import examples/{file}.py" in text


def test_minigrid_by_its_id_and_wrapper(small: Any, tmp_path: Path, command: Callable[..., Any]) -> None:
    pytest.importorskip("minigrid")
    words = ("--env", "MiniGrid-FourRooms-v0", "--import", "minigrid")
    plain = command(*small.flags(tmp_path / "plain", 1), *words)
    assert plain.status == 2 and "with observations Dict(" in plain.err and len(plain.err.splitlines()) == 1
    run = tmp_path / "run"
    wrapper = ("--wrapper", "minigrid.wrappers:ImgObsWrapper")
    assert command(*small.flags(run, 1, algo="maxent", minibatches=2), *words, *wrapper).status == 0
    assert command("evaluate", run, "--episodes", 2, "--import", "minigrid").status == 0
    assert command("play", run, "--out", tmp_path / "episode.html", "--import", "minigrid").status == 0
    page = (tmp_path / "episode.html").read_text()
    assert "pickup" in page  # MiniGrid's own names of actions


@pytest.mark.skipif(
    importlib.util.find_spec("envpool") is None, reason="EnvPool is missing: pip install expgen[envpool]"
)
def test_atari_of_envpool_shows_its_four_frames_as_channels() -> None:
    env = expgen.make_env("envpool:Pong-v5", num_envs=2)
    assert env.spec.obs_shape == (84, 84, 4)
    for _ in range(8):
        env.act(np.full(2, 2, dtype=np.int32))
        before, seen = env.observe().obs[..., -1].copy(), env.observe().obs
        assert seen.shape == (2, 84, 84, 4)
    env.act(np.full(2, 2, dtype=np.int32))
    assert np.array_equal(env.observe().obs[..., -2], before)  # the newest frame last, the one before beside it
    env.close()
