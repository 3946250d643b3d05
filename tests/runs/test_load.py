"""load_agent: policies of a run folder."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import expgen
from expgen.errors import InputError
from expgen.runs.agent_files import read_agent
from expgen.runs.request import select_players
from tests.policies import load_run


@pytest.fixture(scope="module")
def run(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "two"
    small.train(run, members=2, algo="ppo-gru")
    return run


@pytest.fixture
def edited(run: Path, tmp_path: Path) -> Callable[..., Path]:
    """Return a copy of the run with a changed config.json."""

    def edit(part: str, **changes: Any) -> Path:
        data = json.loads((run / "config.json").read_text())
        data["train"][part] |= changes
        (tmp_path / "config.json").write_text(json.dumps(data))
        shutil.copytree(run / "checkpoints", tmp_path / "checkpoints")
        return tmp_path

    return edit


def test_load_agent_has_the_weights_of_the_learner(run: Path, small: Any) -> None:
    for member in (0, 1):
        agent = expgen.load_agent(run, f"member{member}")
        weights = small.weights(run, f"member{member}")
        own = agent.policy.state_dict()
        assert own.keys() == {name.removeprefix("policy.") for name in weights}
        assert all(torch.equal(own[name], weights[f"policy.{name}"]) for name in own)


def test_load_agent_samples_the_same_actions_with_the_same_seed(run: Path) -> None:
    obs = np.random.default_rng(0).integers(256, size=(6, 11, 11, 3), dtype=np.uint8)
    first = np.ones(6, dtype=bool)
    actions = [expgen.load_agent(run, seed=seed).act(obs, first) for seed in (0, 0, 1)]
    assert actions[0].dtype == np.int32 and set(actions[0]) <= set(range(5))
    assert np.array_equal(actions[0], actions[1]) and not np.array_equal(actions[0], actions[2])


def test_loaded_agent_has_name_and_steps(run: Path, small: Any) -> None:
    loaded = load_run(run, "member1")
    assert (loaded.name, loaded.env_steps) == ("member1", 4 * small.update_steps)


@pytest.mark.parametrize("learner", [None, "member1"])
def test_load_agent_lists_its_arguments_if_one_is_unknown(learner: str | None, run: Path) -> None:
    accepted = "accepted: learner, seed, device, weights, temperature, explorer_temperature, .*min_agree"
    with pytest.raises(InputError, match=f"^load_agent has no argument 'temprature'; {accepted}"):
        expgen.load_agent(run, learner, temprature=0)


def test_learner_flag_selects_players(run: Path, tmp_path: Path) -> None:
    agent = read_agent(run)
    for asked in (None, "each"):
        assert select_players(agent, asked) == ["member0", "member1"]
    assert select_players(agent, "member1") == ["member1"]
    for learner in ("member2", "explorer"):
        with pytest.raises(InputError, match=f"--learner is '{learner}'; accepted: each, member0, member1"):
            select_players(agent, learner)
    with pytest.raises(InputError, match="has no checkpoint yet"):
        select_players(replace(agent, folder=tmp_path), None)


@pytest.mark.parametrize(
    ("changes", "tensor"),
    [
        ({"features": 32}, r"encoder\.linear1\.bias is \(16,\)"),
        ({"memory": "none"}, r"memory\.gru\.bias_hh_l0 is \(48,\)"),
    ],
)
def test_load_agent_refuses_weights_of_another_network(
    edited: Callable[..., Path], changes: dict[str, Any], tensor: str
) -> None:
    with pytest.raises(InputError, match=f"member0 holds another network: {tensor}; accepted: "):
        expgen.load_agent(edited("network", **changes))


def test_resume_refuses_weights_of_another_network(edited: Callable[..., Path], small: Any) -> None:
    run = edited("network", features=32)
    before = small.newest(run).read_bytes()
    with pytest.raises(InputError, match=r"another network: encoder\.linear1\.bias is \(16,\); accepted: \(32,\)"):
        expgen.train(run=run, resume=True, device="cpu")
    assert small.newest(run).read_bytes() == before


def test_load_agent_refuses_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no run folder"):
        expgen.load_agent(tmp_path)


def test_evaluation_in_python_plays_any_levels_of_the_environment() -> None:
    """A loaded agent does not know its training levels (0 to 199), so a mixed set is played (docs/evaluation.md)."""
    env = expgen.make_env("minimaze", levels="196:8", num_envs=8)
    result = expgen.evaluate(expgen.load_agent("minimaze/ppo"), env, episodes=8)
    assert sorted(episode.level for episode in result.episodes) == list(range(196, 204))
