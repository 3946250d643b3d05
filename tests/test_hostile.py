"""Hostile and broken input: whatever is in a file, a flag or an environment, the answer is one line or the truth."""

import json
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.evaluation import evaluate as evaluation
from expgen.evaluation.scores import read_scores
from expgen.runs.folder import RunFolder
from expgen.training.checkpoint import DamagedCheckpoint, read_checkpoint, write_checkpoint

JUNK: list[Any] = [
    None, True, -1, 0, 2**70, 1e308, float("nan"), "", "x" * 10_000, "\x00", "../../etc/passwd", "<script>", [], [[]],
    {}, {"a": {}}, [None] * 100, "inf", "٣",
]  # fmt: skip


@pytest.fixture(scope="module")
def run(small, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "run"
    small.train(path, 1, algo="expgen", members=1, min_agree=1, eval_every=small.update_steps, **EXPLORER)
    return path


EXPLORER = {
    "explorer_steps": 128, "explorer_envs": 8, "explorer_rollout_steps": 16, "explorer_minibatches": 2,
    "explorer_features": 16, "explorer_epochs": 1,
}  # fmt: skip


def mangled(tree: Any, rng: random.Random) -> Any:
    """`tree` with one place, anywhere in it, made wrong."""
    if isinstance(tree, dict) and tree and rng.random() < 0.85:
        name = rng.choice(sorted(tree))
        kind = rng.random()
        if kind < 0.1:
            return {key: value for key, value in tree.items() if key != name}
        if kind < 0.2:
            return {**tree, rng.choice(["extra", "__class__", ""]): rng.choice(JUNK)}
        return {**tree, name: mangled(tree[name], rng)}
    return rng.choice(JUNK)


@pytest.mark.parametrize("seed", range(8))
def test_configs(seed: int, run: Path, tmp_path: Path) -> None:
    good = json.loads((run / "config.json").read_text())
    rng = random.Random(seed)
    refused = 0
    for _ in range(60):
        (tmp_path / "config.json").write_text(json.dumps(mangled(good, rng)))
        try:
            RunFolder(tmp_path).read_config()
        except InputError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 20


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Bytes changed, cut out, doubled or put in."""
    at = rng.randrange(len(content))
    length = rng.randrange(1, 20)
    rest, before = content[at + length :], content[max(0, at - length) : at]
    odd = rng.choice([b"\x00", b'"', b",", b"\n", b"\r", b"\xff", b"nan"])
    return content[:at] + rng.choice(
        [rng.randbytes(length) + rest, rest, before + content[at:], odd + content[at:], b""]
    )


@pytest.mark.parametrize("seed", range(4))
def test_score_files(seed: int, run: Path, tmp_path: Path) -> None:
    good = (run / "scores.csv").read_bytes()
    whole = len(read_scores(run / "scores.csv"))
    rng = random.Random(seed)
    file = tmp_path / "scores.csv"
    for _ in range(150):
        file.write_bytes(damaged(good, rng))
        try:
            assert len(read_scores(file)) <= whole + 1
        except InputError as error:
            assert str(file) in str(error)


@pytest.mark.parametrize("seed", range(4))
def test_checkpoints(seed: int, tmp_path: Path) -> None:
    file = tmp_path / "0.safetensors"
    write_checkpoint(file, {"policy.w": torch.arange(50.0), "n": torch.tensor([1, 2])}, {"env_steps": 3})
    good = file.read_bytes()
    rng = random.Random(seed)
    for _ in range(150):
        file.write_bytes(content := damaged(good, rng))
        if content != good:
            with pytest.raises(DamagedCheckpoint):
                read_checkpoint(file)


@pytest.mark.parametrize("size", [2**63, 2**64 - 1, 2**40, 10**9])
def test_a_header_that_says_it_is_huge_is_not_believed(size: int, tmp_path: Path) -> None:
    file = tmp_path / "0.safetensors"
    file.write_bytes(struct.pack("<Q", size) + b'{"__metadata__":{}}' * 10)
    with pytest.raises(DamagedCheckpoint):
        read_checkpoint(file)


def test_a_header_that_promises_terabytes_is_not_believed(tmp_path: Path) -> None:
    header = json.dumps({"x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}, "__metadata__": {}})
    file = tmp_path / "0.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header.encode())
    with pytest.raises(DamagedCheckpoint):
        read_checkpoint(file)


@pytest.mark.parametrize(
    ("change", "is_refused"),
    [(lambda w: w.double(), False), (lambda w: w[:-1], True), (lambda w: w.flatten(), True), (lambda w: None, True)],
)
def test_weights_of_another_shape_are_refused(change: Callable, is_refused: bool, run: Path, command, tmp_path) -> None:
    """A checkpoint that is whole by its checksum, yet not this run's; numbers of another type are converted."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    for file in copy.glob("checkpoints/member0/*.safetensors"):
        tensors, facts = read_checkpoint(file)
        name = next(name for name in sorted(tensors) if name.startswith("policy.") and tensors[name].dim() == 2)
        other = change(tensors.pop(name))
        write_checkpoint(file, tensors if other is None else {**tensors, name: other}, facts)
    outcome = command("evaluate", copy, "--learner", "member0", "--episodes", "2")
    assert outcome.status == (2 if is_refused else 0) and ("accepted" in outcome.err) == is_refused


@pytest.mark.parametrize("seed", range(4))
def test_levels(seed: int) -> None:
    rng = random.Random(seed)
    alphabet = "0123456789:,-+ all.eE\x00٣½²_"
    for _ in range(400):
        text = "".join(rng.choice(alphabet) for _ in range(rng.randrange(12)))
        try:
            levels = LevelSet.parse(text, "--levels")
        except InputError as error:
            assert "--levels" in str(error) and "accepted" in str(error)
            continue
        assert all(0 <= level < 2**31 for level in levels.draw(3, np.random.default_rng(0)).tolist())


gymnasium = pytest.importorskip("gymnasium")


ODD = {
    "nan": np.full(3, np.nan, np.float32), "long": np.zeros(4, np.float32), "square": np.zeros((3, 3), np.float32),
    "text": "text", "list": [1, 2], "words": ["a", "b", "c"], "one": 1.0,
}  # fmt: skip


class Odd(gymnasium.Env):
    """Well behaved but for one thing, from the third step on."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, obs: str = "", reward: str = "1", ends: bool = True) -> None:
        self.odd, self.reward, self.ends, self.steps = ODD.get(obs), float(reward), ends, 0

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.steps = 0
        return np.zeros(3, np.float32), {}

    def step(self, action: int) -> Any:
        self.steps += 1
        is_odd = self.steps > 2
        obs = self.odd if is_odd and self.odd is not None else np.full(3, 0.1, np.float32)
        return obs, self.reward if is_odd else 0.0, self.ends and self.steps >= 9, False, {}


@pytest.fixture
def odd() -> Any:
    gymnasium.register("Odd-v0", entry_point=lambda **options: Odd(**options))
    yield
    gymnasium.registry.pop("Odd-v0")


def train_odd(small, path: Path, **options: Any) -> Any:
    return small.train(path, 3, env="gymnasium:Odd-v0", options=options)


@pytest.mark.parametrize("options", [{"obs": "nan"}, {"reward": "nan"}])
def test_nan_from_an_environment_stops_the_learner(options: dict[str, Any], small, odd, tmp_path, capsys) -> None:
    result = train_odd(small, tmp_path / "run", **options)
    assert result.diverged == ("member0",) and "diverged at" in capsys.readouterr().err


@pytest.mark.parametrize("obs", ["long", "square", "text", "list", "words", "one"])
def test_observations_that_are_not_as_announced(obs: str, small, odd, tmp_path) -> None:
    with pytest.raises(InputError, match="gymnasium:Odd-v0"):
        train_odd(small, tmp_path / "run", obs=obs)


def test_episodes_that_never_end_can_be_learnt_from_but_not_scored(small, odd, tmp_path, monkeypatch) -> None:
    assert train_odd(small, tmp_path / "run", ends=False).is_complete
    monkeypatch.setattr(evaluation, "LONGEST", 50)
    with pytest.raises(InputError, match="has not ended after 50 steps"):
        small.train(tmp_path / "scored", 1, env="gymnasium:Odd-v0", options={"ends": False}, eval_every=128)
