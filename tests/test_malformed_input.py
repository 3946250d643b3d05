"""Malformed files, flags and environments are rejected in one line."""

import json
import random
import resource
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save

from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.evaluation import evaluate as evaluation
from expgen.evaluation.scores import read_scores
from expgen.runs.folder import RunFolder
from expgen.runs.shipped import load_agent
from expgen.training.checkpoint import FORMAT, DamagedCheckpoint, digest_of, read_checkpoint, write_checkpoint
from tests.attack.damage import damaged, mangled


@pytest.fixture(scope="module")
def run(small, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "run"
    small.train(path, 1, algo="expgen", members=1, min_agree=1, eval_every=small.update_steps, **EXPLORER)
    return path


EXPLORER = {
    "explorer_steps": 128, "explorer_envs": 8, "explorer_rollout_steps": 16, "explorer_minibatches": 2,
    "explorer_features": 16, "explorer_epochs": 1,
}  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_malformed_config_files_are_rejected(seed: int, run: Path, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("seed", range(4))
def test_malformed_score_files_are_rejected(seed: int, run: Path, tmp_path: Path) -> None:
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
def test_malformed_checkpoints_are_rejected(seed: int, tmp_path: Path) -> None:
    file = tmp_path / "0.safetensors"
    write_checkpoint(file, {"policy.w": torch.arange(50.0), "n": torch.tensor([1, 2])}, {"env_steps": 3})
    good = file.read_bytes()
    rng = random.Random(seed)
    for _ in range(150):
        file.write_bytes(content := damaged(good, rng))
        if content != good:
            with pytest.raises(DamagedCheckpoint):
                read_checkpoint(file)


@pytest.mark.parametrize(
    "facts",
    [{}, {"env_steps": "many"}, {"env_steps": 10**30}, {"env_steps": -1}, {"env_steps": 1, "seconds": float("nan")},
     {"env_steps": 1, "sessions": [[1]]}, {"env_steps": 1, "sessions": 3}, [], {"env_steps": 1.5}],
)  # fmt: skip
def test_checkpoint_with_impossible_facts_is_damaged(facts: Any, tmp_path: Path) -> None:
    file = tmp_path / "0.safetensors"
    write_checkpoint(file, {"policy.w": torch.zeros(1)}, {"env_steps": 1})
    text = json.dumps(facts, sort_keys=True)
    metadata = {"format": FORMAT, "facts": text, "sha256": digest_of({"policy.w": torch.zeros(1)}, text)}
    file.write_bytes(save({"policy.w": torch.zeros(1)}, metadata))
    with pytest.raises(DamagedCheckpoint):
        read_checkpoint(file)


def test_checkpoint_with_deeply_nested_header_is_damaged(tmp_path: Path) -> None:
    header = '{"__metadata__":' + '{"a":' * 100_000 + "1" + "}" * 100_001
    (tmp_path / "0.safetensors").write_bytes(struct.pack("<Q", len(header)) + header.encode())
    with pytest.raises(DamagedCheckpoint):
        read_checkpoint(tmp_path / "0.safetensors")


def changed(run: Path, copy: Path, name: str, *path: Any, value: Any) -> Path:
    """Return a copy of `run` with one value of its JSON file `name` changed."""
    shutil.copytree(run, copy)
    data = inner = json.loads((copy / name).read_text())
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    (copy / name).write_text(json.dumps(data))
    return copy


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("members", 0, "network", "features"), 10_000, r"another network: .* accepted: \(10000,"),
        (("members", 0, "network", "features"), 10**7, "--features is 10000000; accepted: 1 to 16384"),
        (("members", 0, "network", "extra_layers"), 10**6, "--extra-layers is 1000000; accepted: 0 to 100"),
        (("spec", "obs_shape"), [10**6, 10**6, 3], "the size of obs_shape is 3000000000000; accepted: 1 to"),
        (("spec", "obs_shape"), [2**8, 2**8, 2**8], "another network"),
        (("spec", "num_actions"), 2 * 10**9, "num_actions is 2000000000; accepted: 1 to 65536"),
        (("levels",), "0:2000000000", "levels names 2000000000 levels; accepted: at most"),
    ],
)
def test_agent_file_with_huge_network_is_rejected_before_allocation(
    place: tuple[Any, ...], value: Any, message: str, run: Path, tmp_path: Path
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match=message):
        load_agent(changed(run, tmp_path / "run", "agent.json", *place, value=value), learner="member0")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kilobytes


@pytest.mark.parametrize("verb", ["status", "train", "evaluate"])
def test_billion_members_are_rejected_in_one_line(
    verb: str, run: Path, command: Callable[..., Any], tmp_path: Path
) -> None:
    changed(run, tmp_path / "bad", "config.json", "train", "members", value=10**9)
    shutil.copytree(run, tmp_path / "good")
    (tmp_path / "bad" / "agent.json").unlink()
    where = {"status": ["status", tmp_path], "train": ["train", "--resume", "--run", tmp_path / "bad"]}
    outcome = command(*where.get(verb, [verb, tmp_path / "bad"]))
    assert f"{tmp_path / 'bad' / 'config.json'}: --members is 1000000000; accepted: 1 to 10000" in (
        outcome.out + outcome.err
    )
    if verb == "status":  # the other run is shown
        assert outcome.status == 1 and "good " in outcome.out and "done" in outcome.out
    else:
        assert outcome.status == 2


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1j])
def test_weights_that_are_not_finite_are_rejected(number: Any, run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    for file in (tmp_path / "run").glob("checkpoints/member0/*.safetensors"):
        tensors, facts = read_checkpoint(file)
        spoilt = {name: t * number if name.startswith("policy.") else t for name, t in tensors.items()}
        write_checkpoint(file, spoilt, facts)
    with pytest.raises(InputError, match=r"member0 holds weights .* that are not all finite numbers; accepted: "):
        load_agent(tmp_path / "run", learner="member0")


@pytest.mark.parametrize("size", [2**63, 2**64 - 1, 2**40, 10**9])
def test_checkpoint_with_huge_header_length_is_rejected(size: int, tmp_path: Path) -> None:
    file = tmp_path / "0.safetensors"
    file.write_bytes(struct.pack("<Q", size) + b'{"__metadata__":{}}' * 10)
    with pytest.raises(DamagedCheckpoint):
        read_checkpoint(file)


def test_checkpoint_header_with_terabytes_of_tensors_is_rejected(tmp_path: Path) -> None:
    header = json.dumps({"x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}, "__metadata__": {}})
    file = tmp_path / "0.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header.encode())
    with pytest.raises(DamagedCheckpoint):
        read_checkpoint(file)


@pytest.mark.parametrize(
    ("change", "is_refused"),
    [(lambda w: w.double(), False), (lambda w: w[:-1], True), (lambda w: w.flatten(), True), (lambda w: None, True)],
)
def test_weights_of_wrong_shape_are_rejected(change: Callable, is_refused: bool, run: Path, command, tmp_path) -> None:
    """The checksum is correct but the tensors are another run's; other number types are converted."""
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
def test_malformed_level_sets_are_rejected(seed: int) -> None:
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
    """An environment with one fault, from the third step on."""

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
def test_nan_from_environment_stops_the_learner(options: dict[str, Any], small, odd, tmp_path, capsys) -> None:
    result = train_odd(small, tmp_path / "run", **options)
    assert result.diverged == ("member0",) and "diverged at" in capsys.readouterr().err


@pytest.mark.parametrize("obs", ["long", "square", "text", "list", "words", "one"])
def test_observations_that_differ_from_the_spec_are_rejected(obs: str, small, odd, tmp_path) -> None:
    with pytest.raises(InputError, match="gymnasium:Odd-v0"):
        train_odd(small, tmp_path / "run", obs=obs)


def test_endless_episodes_can_be_trained_on_but_not_evaluated(small, odd, tmp_path, monkeypatch) -> None:
    assert train_odd(small, tmp_path / "run", ends=False).is_complete
    monkeypatch.setattr(evaluation, "MAX_EPISODE_STEPS", 50)
    with pytest.raises(InputError, match="has not ended after 50 steps"):
        small.train(tmp_path / "scored", 1, env="gymnasium:Odd-v0", options={"ends": False}, eval_every=128)
