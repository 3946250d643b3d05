"""scripts/pack-runs: packed runs play and resume with their weights; archives keep to their size."""

import errno
import re
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
from expgen.errors import FailedStorage, InputError
from expgen.runs.folder import RunFolder
from expgen.training.checkpoint import Checkpoint, latest_checkpoint
from tests.policies import newest_checkpoint
from tests.runs.rows import metrics

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


def test_packed_run_has_networks_and_text_files(runs: Path, unpacked: Path) -> None:
    for name in ("first", "second"):
        for file in ("config.json", "agent.json", "metrics.csv", "journal.json"):
            assert (unpacked / name / file).read_bytes() == (runs / name / file).read_bytes()
        assert not (unpacked / name / "tensorboard").exists()
    trained = newest_checkpoint(runs / "second", "member0").tensors
    packed = newest_checkpoint(unpacked / "second", "member0").tensors
    assert {name.partition(".")[0] for name in packed} == {"policy", "critic", "advantage", "classifier", "reward"}
    assert not any("adam" in name for name in packed)
    assert torch.equal(packed["reward.moments"], trained["reward.moments"])
    networks = [name for name in trained if name.startswith("critic.network.")]
    assert networks and all(torch.equal(packed[name], trained[name].half()) for name in networks)


@pytest.mark.parametrize("algo", ["ppo", "daac", "idaac", "ppg", "ucb-drac", "plr", "maxent", "mixed"])
def test_packed_run_trains_further_with_its_networks(algo: str, small: Any, tmp_path: Path) -> None:
    small.train(tmp_path / "runs" / "run", 2, algo=algo, average=0.9)
    list(script.pack_runs(tmp_path / "runs", tmp_path / "out", 15))
    with tarfile.open(tmp_path / "out" / "runs-1.tar.gz") as tar:
        tar.extractall(tmp_path / "elsewhere", filter="data")
    run = tmp_path / "elsewhere" / "runs" / "run"
    before = newest_checkpoint(run, "member0").tensors
    config = (run / "config.json").read_text()
    (run / "config.json").write_text(re.sub(r'learning_rate": [0-9.e-]+', 'learning_rate": 1e-9', config))
    small.train(run, 3, algo=algo, average=0.9, learning_rate=1e-9, resume=True)
    after = newest_checkpoint(run, "member0")
    assert (after.facts["env_steps"], after.facts["average"]["updates"]) == (3 * small.update_steps, 3)
    if "reward.moments" in before and algo != "mixed":  # mean, variance and count
        assert after.tensors["reward.moments"][2] == before["reward.moments"][2] + small.update_steps
    networks = [name for name in before if name.endswith(".weight") and not name.startswith("average.")]
    assert networks and all(torch.allclose(after.tensors[name], before[name].float(), atol=1e-6) for name in networks)


def test_packed_curves_reach_the_checkpoint_of_a_run_that_is_training(
    small: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = tmp_path / "runs" / "run"
    small.train(run, 2)

    def train_and_read(folder: Path) -> Checkpoint | None:
        small.train(run, 3, resume=True)
        return latest_checkpoint(folder)

    monkeypatch.setitem(script.copy_small.__globals__, "latest_checkpoint", train_and_read)
    script.copy_small(RunFolder(run), RunFolder(tmp_path / "packed"))
    assert small.facts(tmp_path / "packed")["updates"] == len(metrics(tmp_path / "packed")) == 3


def test_archives_keep_to_the_size_where_runs_allow() -> None:
    sizes = {"a": 5, "b": 4, "c": 3, "d": 3, "e": 12}
    groups = script.bins(sizes, limit=8)
    assert sorted(name for group in groups for name in group) == sorted(sizes)
    assert all(sum(sizes[name] for name in group) <= 8 for group in groups if group != ["e"])
    assert len(groups) == 3 and ["e"] in groups


def test_archives_of_an_earlier_call_with_more_of_them_are_deleted(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "runs-7.tar.gz").touch()  # not in the sequence: somebody else's
    assert [archive.name for archive in script.pack_runs(runs, tmp_path, 0)] == ["runs-1.tar.gz", "runs-2.tar.gz"]
    assert [archive.name for archive in script.pack_runs(runs, tmp_path, 15)] == ["runs-1.tar.gz"]
    assert {path.name for path in tmp_path.iterdir()} == {"runs-1.tar.gz", "runs-7.tar.gz"}


def test_folder_without_runs_is_refused_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, SCRIPT, tmp_path, tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "contains no run" in done.stderr


@pytest.mark.parametrize("max_mib", [float("nan"), float("inf"), -1.0])
def test_impossible_size_is_refused(max_mib: float, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--max-mib is .*; accepted: 0 to"):
        list(script.pack_runs(tmp_path, tmp_path / "out", max_mib))


def test_full_disk_leaves_no_partial_archive(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "add", fail)
    with pytest.raises(FailedStorage, match=r"cannot write .*runs-1\.tar\.gz: No space left"):
        list(script.pack_runs(runs, tmp_path / "out", 15))
    assert not list((tmp_path / "out").iterdir())
