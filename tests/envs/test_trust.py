"""Names in files import no modules unless the user has named these too."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen import plugins
from expgen.envs.make import build_env, make_env
from expgen.errors import InputError
from expgen.training.checkpoint import read_checkpoint, write_checkpoint

pytest.importorskip("gymnasium")

MODULE = """
import pathlib
import gymnasium

pathlib.Path(__file__).with_name("imported").touch()
gymnasium.register("Downloaded-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a module to the current folder; return the file that its import creates."""
    (tmp_path / "downloaded.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(plugins, "_TRUSTED", {})
    monkeypatch.delitem(sys.modules, "downloaded", raising=False)
    return tmp_path / "imported"


NAME = "gymnasium:downloaded:Downloaded-v0"


def test_environment_named_only_in_a_file_imports_nothing(module: Path) -> None:
    with pytest.raises(InputError, match="accepted: --import downloaded, if you trust it"):
        build_env(NAME, 3, 1)
    with pytest.raises(InputError, match="accepted: --import downloaded"):
        build_env("gymnasium:CartPole-v1", 3, 1, entry="downloaded:Thing")
    assert not module.exists()


def test_environment_named_by_user_is_imported(module: Path) -> None:
    assert make_env(NAME, 3, 1).spec.num_actions == 2
    assert module.exists()
    assert build_env(NAME, 3, 1).spec.num_actions == 2  # files may name it from now on


def test_run_folder_imports_no_module_until_user_names_it(
    module: Path, small: Any, tmp_path: Path, command: Callable[..., Any]
) -> None:
    run = tmp_path / "run"
    small.train(run, 1, env="gymnasium:CartPole-v1")
    for file in (run / "config.json", run / "agent.json"):
        data = json.loads(file.read_text())
        data.get("train", data)["env"] = NAME
        file.write_text(json.dumps(data))
    tensors, facts = read_checkpoint(small.newest(run))
    write_checkpoint(small.newest(run), tensors, facts | {"origin": facts["origin"] | {"env": NAME}})
    words: list[tuple[Any, ...]] = [
        ("evaluate", run, "--episodes", 2),
        ("play", run, "--level", 1000, "--out", tmp_path / "episode.html"),
        ("train", "--resume", "--run", run),
        ("status", run),
        ("report", run, "--out", tmp_path / "report"),
    ]
    for line in words:
        done = command(*line)
        assert not module.exists() and "Traceback" not in done.err
        if line[0] in ("evaluate", "play", "train"):
            assert done.status == 2 and "accepted: --import downloaded" in done.err
    assert command("evaluate", run, "--episodes", 2, "--import", "downloaded").status == 0
    assert module.exists()
