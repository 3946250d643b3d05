"""Untrained policies and short episodes to record."""

from collections.abc import Callable
from typing import Any, Literal

import pytest
import torch

from expgen.agents.consensus import ConsensusAgent, ConsensusConfig
from expgen.envs.levels import LevelSet
from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import NetworkConfig, Policy, make_policy
from expgen.watch.record import Recording, record_episode
from expgen.watch.stage import open_stage

SPEC = EnvSpec("minimaze", (11, 11, 3), "uint8", 5)
SHORT = {"time_limit": 40}


def make_network(seed: int, memory: bool = False, encoder: Literal["small", "conv"] = "small") -> Policy:
    """A policy with clear preferences."""
    config = NetworkConfig(encoder=encoder, features=16, memory="gru" if memory else "none")
    policy = make_policy(SPEC, config, torch.Generator().manual_seed(seed), torch.device("cpu"))
    with torch.no_grad():
        policy.policy_head.weight *= 300
    return policy.eval()


@pytest.fixture(scope="session")
def policy() -> Policy:
    return make_network(0)


@pytest.fixture(scope="session")
def consensus() -> Callable[..., ConsensusAgent]:
    """Make an ExpGen agent of four untrained members; arguments are fields of its ConsensusConfig."""

    def make(seed: int = 0, **settings: Any) -> ConsensusAgent:
        members = [make_network(index) for index in range(4)]
        return ConsensusAgent(members, make_network(9, memory=True), SPEC, ConsensusConfig(**settings), seed)

    return make


@pytest.fixture(scope="session")
def record() -> Callable[..., Recording]:
    """Record one short episode of an agent on a level of minimaze."""

    def make(agent: Any, level: int = 1003, **options: Any) -> Recording:
        stage = open_stage("minimaze", LevelSet((level,)), **{**SHORT, **options})
        return record_episode(agent, stage, "someone", split="test")

    return make


@pytest.fixture(scope="session")
def outvoted(record: Callable[..., Recording], consensus: Callable[..., ConsensusAgent]) -> Recording:
    """An episode with majority vote and `once`, in which members other than the leader win."""
    recording = record(consensus(seed=4, min_agree=2, vote="majority", once=True))
    assert any(step.reason.is_set_aside for step in recording.steps)
    assert len({step.reason.member for step in recording.steps if step.reason.who == "ensemble"}) > 1
    return recording


@pytest.fixture(scope="session")
def hedged(record: Callable[..., Recording], consensus: Callable[..., ConsensusAgent]) -> Recording:
    """An episode in which the members object to some of the explorer's actions."""
    recording = record(consensus(seed=1, min_agree=3, hedge=0.5))
    assert 0 < sum(step.reason.is_hedged for step in recording.steps) < len(recording.steps)
    return recording


@pytest.fixture(scope="session")
def mixed(record: Callable[..., Recording], consensus: Callable[..., ConsensusAgent]) -> Recording:
    """An episode in which both the ensemble and the explorer act."""
    recording = record(consensus(seed=1, min_agree=3))
    assert {step.reason.who for step in recording.steps} == {"ensemble", "explorer"}
    return recording
