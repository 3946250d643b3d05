"""Loading the C library, and calls that are rejected before they reach it."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import expgen
from expgen.envs.libenv import LibEnv
from expgen.envs.library import is_installed, load_library
from expgen.envs.procgen import ProcgenConfig
from expgen.errors import InputError

ROOT = Path(expgen.__file__).parents[1]
LEVELS = {"start_level": 0, "num_levels": 200, "rand_seed": 0}


def with_procgen(test: Callable[..., None]) -> Callable[..., None]:
    """Marks one test; the others in this file need no library."""
    return pytest.mark.procgen(pytest.mark.skipif(not is_installed(), reason="no ProcGen library")(test))


def games(game: str, num_envs: int = 2, threads: int = 0, **options: Any) -> LibEnv:
    config = ProcgenConfig(game).options()
    return LibEnv(num_envs, {**config, **LEVELS, "num_threads": threads, **options})


def trust(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust `library`, as a user does who has built it."""
    monkeypatch.setenv("EXPGEN_PROCGEN_SHA256", hashlib.sha256(library.read_bytes()).hexdigest())


def test_unknown_library_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "libenv.so"
    library.write_bytes(b"unknown")
    digest = hashlib.sha256(b"unknown").hexdigest()
    line = f"{library} is not a known ProcGen library; accepted: the library of procgen-mirror 0.10.7"
    with pytest.raises(InputError, match=f"^{line}, or EXPGEN_PROCGEN_SHA256={digest} if you trust it$"):
        load_library(library)
    monkeypatch.setenv("EXPGEN_PROCGEN_SHA256", digest)
    with pytest.raises(InputError, match="cannot be loaded"):
        load_library(library)


def test_empty_library_file_raises_one_line_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libenv.so").touch()
    trust(tmp_path / "libenv.so", monkeypatch)
    with pytest.raises(InputError, match="cannot be loaded"):
        load_library(tmp_path / "libenv.so")


@pytest.mark.skipif(not shutil.which("gcc"), reason="no compiler")
def test_library_with_missing_dependency_raises_one_line_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent, library = tmp_path / "libabsent.so", tmp_path / "libenv.so"
    empty = ["gcc", "-shared", "-x", "c", os.devnull, "-x", "none", "-Wl,--no-as-needed"]
    subprocess.run([*empty, "-o", absent, "-Wl,-soname,libglib-2.0.so.999"], check=True)
    subprocess.run([*empty, "-o", library, absent], check=True)
    absent.unlink()
    trust(library, monkeypatch)
    with pytest.raises(InputError, match=r"needs libglib-2\.0\.so\.999, .* Debian package libglib2\.0-0$"):
        load_library(library)


@with_procgen
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"use_wings": True}, "use_wings"),
        ({"num_levels": True}, "type int"),
        ({"center_agent": 1}, "type bool"),
        ({"debug_mode": 2**31}, "option debug_mode is 2147483648; accepted: -2147483648 to 2147483647"),
    ],
)
def test_libenv_rejects_options_that_would_abort_the_process(option: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        games("maze", **option)


@with_procgen
def test_libenv_tensor_names_shapes_and_types() -> None:
    env = games("maze", num_envs=3)
    assert {name: tensor.shape for name, tensor in env.obs.items()} == {"rgb": (3, 64, 64, 3)}
    assert set(env.info) == {"level_seed", "prev_level_seed", "prev_level_complete"}
    assert env.action["action"].dtype == np.int32 and env.reward.dtype == np.float32


@with_procgen
def test_render_human_adds_a_large_picture() -> None:
    env = games("maze", render_human=True)
    env.observe()
    assert env.info["rgb"].shape == (2, 512, 512, 3) and env.info["rgb"].any()


@with_procgen
def test_libenv_rejects_invalid_indices_and_states() -> None:
    maze, heist = games("maze"), games("heist")
    with pytest.raises(IndexError):
        maze.get_state(2)
    for state in (heist.get_state(0), maze.get_state(0)[:-4], b""):
        with pytest.raises(InputError, match="not a saved maze game"):
            maze.set_state(0, state)
    with pytest.raises(InputError, match="use_generated_assets"):
        games("maze", use_generated_assets=True).get_state(0)


THREADS_OF_GAMES = """
import gc, os
from tests.envs.test_libenv import games

def num_threads():
    return len(os.listdir("/proc/self/task"))

before = num_threads()
closed, dropped = games("coinrun", threads=2), games("coinrun", threads=2)
counts = [num_threads() - before]
for env in (closed, dropped):
    env.observe()
    env.act()
obs = dropped.obs["rgb"]
closed.close()
closed.close()
del env, dropped
gc.collect()
print(*counts, num_threads() - before, obs.any())
"""


@with_procgen
def test_libenv_threads_end_on_close_and_garbage_collection() -> None:
    command = [sys.executable, "-c", THREADS_OF_GAMES]  # of its own: other tests' threads may end at any time
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["4", "0", "True"]


@with_procgen
def test_closed_games_are_refused() -> None:
    closed = games("coinrun")
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        closed.act()


@with_procgen
def test_procgen_env_imports_neither_gym_nor_procgen() -> None:
    code = (
        "import sys, numpy as np; from expgen.envs.make import make_env\n"
        "env = make_env('procgen:maze', num_envs=2); env.act(np.zeros(2, np.int32)); env.observe()\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('gym', 'gym3', 'gymnasium', 'procgen')])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
