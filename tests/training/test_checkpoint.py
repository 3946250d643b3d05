"""Checkpoints are written atomically, verified when read, and never run code."""

import io
import os
import pickle
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from expgen.errors import FailedStorage, InputError
from expgen.training.checkpoint import (
    DamagedCheckpoint,
    add_checkpoint,
    latest_checkpoint,
    read_checkpoint,
    write_checkpoint,
)

TENSORS = {
    "policy.weight": torch.arange(6, dtype=torch.float32).view(2, 3).T,  # not contiguous
    "adam.step": torch.tensor(3.0),
    "memory": torch.zeros(4, 0),
    "env.first": torch.tensor([True, False]),
    "reward.moments": torch.tensor([0.1, 2.0, 1e-4], dtype=torch.float64),
    "env.drawn": torch.tensor([2**63 - 1], dtype=torch.int64),
}
FACTS = {"learner": "member0", "env_steps": 128, "seconds": 0.5}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "000000000128.safetensors"
    write_checkpoint(path, TENSORS, FACTS)
    return path


@contextmanager
def disk_of(num_bytes: int) -> Iterator[None]:
    """Limit file sizes to `num_bytes`; writing more fails like a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_checkpoint_roundtrip_keeps_tensors_and_facts(path: Path, equal: Callable[..., bool]) -> None:
    tensors, facts = read_checkpoint(path)
    assert facts == FACTS and equal(tensors, TENSORS)
    assert all(tensors[name].dtype == TENSORS[name].dtype for name in TENSORS)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_checkpoint_is_a_plain_safetensors_file(path: Path, equal: Callable[..., bool]) -> None:
    assert equal(load_file(path), TENSORS)


def test_read_checkpoint_rejects_any_changed_byte(path: Path) -> None:
    good = path.read_bytes()
    for index in range(len(good)):
        path.write_bytes(good[:index] + bytes([good[index] ^ 0x20]) + good[index + 1 :])
        with pytest.raises(DamagedCheckpoint, match="accepted: a file expgen wrote"):
            read_checkpoint(path)


def test_read_checkpoint_rejects_truncated_files(path: Path) -> None:
    good = path.read_bytes()
    for length in range(len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(DamagedCheckpoint, match=f"{path} is not a complete expgen checkpoint"):
            read_checkpoint(path)


def foreign_text(path: Path) -> None:
    path.write_text("step,loss\n" * 100)


def foreign_tensors(path: Path) -> None:
    save_file({"weight": torch.zeros(3)}, path)


def foreign_metadata(path: Path) -> None:
    save_file({"weight": torch.zeros(3)}, path, {"format": "pt"})


def other_facts(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"member0", b"member1"))


@pytest.mark.parametrize("damage", [foreign_text, foreign_tensors, foreign_metadata, other_facts])
def test_read_checkpoint_rejects_foreign_files(path: Path, damage: Callable[[Path], None]) -> None:
    damage(path)
    with pytest.raises(DamagedCheckpoint, match="accepted: a file expgen wrote"):
        read_checkpoint(path)


class Bomb:
    """Creates a folder when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.mark),)


def pickled(bomb: Bomb, path: Path) -> Callable[[], object]:
    path.write_bytes(pickle.dumps(bomb))
    return lambda: pickle.loads(path.read_bytes())


def torch_saved(bomb: Bomb, path: Path) -> Callable[[], object]:
    torch.save(bomb, path)
    return lambda: torch.load(io.BytesIO(path.read_bytes()), weights_only=False)


@pytest.mark.parametrize("save", [pickled, torch_saved])
def test_read_checkpoint_rejects_pickles_without_running_them(
    path: Path, save: Callable[..., Callable], tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    unpickle = save(Bomb(mark), path)
    with pytest.raises(DamagedCheckpoint):
        read_checkpoint(path)
    assert not mark.exists()
    unpickle()
    assert mark.exists()  # unpickling would have run it


def test_newest_two_checkpoints_are_kept_and_the_newest_is_read(tmp_path: Path) -> None:
    for env_steps in (900, 1000, 11000):  # names sort as numbers do
        add_checkpoint(tmp_path, env_steps, {"x": torch.tensor(env_steps)}, {"env_steps": env_steps})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "000000001000.safetensors",
        "000000011000.safetensors",
    ]
    found = latest_checkpoint(tmp_path)
    assert found is not None and found.facts["env_steps"] == 11000


@pytest.mark.parametrize("content", [b"", b"not tensors", None])
def test_latest_checkpoint_falls_back_when_the_newest_is_damaged(
    tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    for env_steps in (100, 200):
        newest = add_checkpoint(tmp_path, env_steps, TENSORS, {"env_steps": env_steps})
    newest.write_bytes(newest.read_bytes()[:-1] if content is None else content)
    found = latest_checkpoint(tmp_path)
    assert found is not None and found.facts["env_steps"] == 100
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"expgen: {newest}") and line.endswith("using the one before it")


def test_new_checkpoints_are_kept_below_damaged_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for env_steps in (800, 900):
        (tmp_path / f"{env_steps:012d}.safetensors").write_bytes(b"damaged")
    for env_steps in (100, 200, 300):
        add_checkpoint(tmp_path, env_steps, TENSORS, {"env_steps": env_steps})
        found = latest_checkpoint(tmp_path)
        assert found is not None and found.facts["env_steps"] == env_steps
    assert [int(path.stem) for path in sorted(tmp_path.iterdir())] == [200, 300, 800, 900]
    assert len(capsys.readouterr().err.splitlines()) == 6


def test_latest_checkpoint_is_none_without_files_and_raises_when_all_are_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert latest_checkpoint(tmp_path) is None and latest_checkpoint(tmp_path / "absent") is None
    add_checkpoint(tmp_path, 100, TENSORS, {}).write_bytes(b"")
    with pytest.raises(DamagedCheckpoint, match=r"000000000100\.safetensors"):
        latest_checkpoint(tmp_path)
    assert capsys.readouterr().err == ""


def test_latest_checkpoint_ignores_partial_files(tmp_path: Path) -> None:
    add_checkpoint(tmp_path, 100, TENSORS, {"env_steps": 100})
    (tmp_path / "000000000200.safetensors.part").write_bytes(b"half")
    found = latest_checkpoint(tmp_path)
    assert found is not None and found.facts["env_steps"] == 100


def test_full_disk_keeps_the_old_checkpoint(path: Path) -> None:
    large: dict[str, Tensor] = {"x": torch.zeros(10_000)}
    with disk_of(8_192), pytest.raises(InputError, match=f"cannot write {path}: File too large; accepted: .* space"):
        write_checkpoint(path, large, FACTS)
    assert read_checkpoint(path).facts == FACTS
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    write_checkpoint(path, large, FACTS)  # with space again
    assert read_checkpoint(path).tensors["x"].shape == (10_000,)


def test_latest_checkpoint_skips_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_checkpoint(tmp_path, 100, TENSORS, {"env_steps": 100})
    os.mkfifo(tmp_path / "000000000200.safetensors")
    found = latest_checkpoint(tmp_path)
    assert found is not None and found.facts["env_steps"] == 100
    assert "000000000200.safetensors is a pipe; accepted: a regular file" in capsys.readouterr().err


def test_add_checkpoint_does_not_recreate_a_deleted_run_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    add_checkpoint(run / "checkpoints" / "member0", 100, TENSORS, {})
    shutil.rmtree(run)
    with pytest.raises(FailedStorage, match=f"the folder {run} no longer exists"):
        add_checkpoint(run / "checkpoints" / "member0", 200, TENSORS, {})
    assert not run.exists()
