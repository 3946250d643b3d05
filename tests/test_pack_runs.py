"""scripts/pack-runs: packed runs play and resume with their weights; archives keep to their size."""

import subprocess
import sys
import tarfile
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import expgen
from tests.policies import newest_checkpoint

SCRIPT = Path(__file__).parents[1] / "scripts" / "pack-runs"
script = SimpleNamespace(**run_path(str(SCRIPT)))


@pytest.fixture(scope="module")
def runs(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run with an average and one of IDAAC, whose value network is not packed."""
    folder = tmp_path_factory.mktemp("trained") / "runs"
    small.train(folder / "first", 2, average=0.9)
    small.train(folder / "second", 2, algo="idaac", value_epochs=1)
    return folder


@pytest.fixture(scope="module")
def unpacked(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out, to = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("elsewhere")
    subprocess.run([sys.executable, SCRIPT, runs, out], check=True, capture_output=True)
    assert [path.name for path in out.iterdir()] == ["runs-1.tar.gz"]
    with tarfile.open(out / "runs-1.tar.gz") as tar:
        tar.extractall(to, filter="data")
    return to / "runs"


@pytest.mark.parametrize("weights", ["live", "average"])
def test_packed_run_plays_with_its_weights_in_half_precision(runs: Path, unpacked: Path, weights: str) -> None:
    prefix = {"live": "policy.", "average": "average."}[weights]
    trained = newest_checkpoint(runs / "first", "member0").tensors
    packed = newest_checkpoint(unpacked / "first", "member0").tensors
    names = [name for name in trained if name.startswith(prefix)]
    assert names and all(torch.equal(packed[name], trained[name].half()) for name in names)
    env = expgen.make_env("minimaze", levels=range(500, 510), num_envs=5)
    assert expgen.evaluate(expgen.load_agent(unpacked / "first", weights=weights), env, episodes=5).episodes


def test_packed_run_has_policies_and_text_files_alone(runs: Path, unpacked: Path) -> None:
    for name in ("first", "second"):
        for file in ("config.json", "agent.json", "metrics.csv", "journal.json"):
            assert (unpacked / name / file).read_bytes() == (runs / name / file).read_bytes()
        assert not (unpacked / name / "tensorboard").exists()
    prefixes = {name.partition(".")[0] for name in newest_checkpoint(unpacked / "second", "member0").tensors}
    assert prefixes == {"policy"}


def test_packed_run_resumes_like_a_shipped_agent(small: Any, unpacked: Path) -> None:
    small.train(unpacked / "first", 4, average=0.9, resume=True)
    facts = newest_checkpoint(unpacked / "first", "member0").facts
    assert (facts["env_steps"], facts["average"]["updates"]) == (4 * small.update_steps, 4)


def test_archives_keep_to_the_size_where_runs_allow() -> None:
    sizes = {"a": 5, "b": 4, "c": 3, "d": 3, "e": 12}
    groups = script.bins(sizes, limit=8)
    assert sorted(name for group in groups for name in group) == sorted(sizes)
    assert all(sum(sizes[name] for name in group) <= 8 for group in groups if group != ["e"])
    assert len(groups) == 3 and ["e"] in groups


def test_folder_without_runs_is_refused_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, SCRIPT, tmp_path, tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "contains no run" in done.stderr
