"""Frames seen before are not computed again, and nothing else is different."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from expgen.agents.agent import PolicyAgent
from expgen.envs.make import make_env
from expgen.envs.vec_env import EnvSpec
from expgen.evaluation.evaluate import evaluate
from expgen.networks.actor_critic import NetworkConfig, Policy, make_policy
from expgen.networks.remembered import RememberedFrames
from expgen.training.fast_networks import for_play, plain_copy

SPEC = EnvSpec("minimaze", (7, 7, 3), "uint8", 5)


class CountingEncoder(nn.Module):
    """Sums each frame, times a weight, and counts the frames it was asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.asked: list[int] = []

    def forward(self, obs: Tensor) -> Tensor:
        self.asked.append(len(obs))
        return obs.flatten(1).sum(1, keepdim=True) * self.weight


def frames(*shades: int) -> Tensor:
    return torch.tensor(shades, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 2, 2, 3)


@torch.no_grad()
def test_a_frame_is_computed_once() -> None:
    encoder = CountingEncoder()
    remembered = RememberedFrames(encoder)
    for shades, new in (((1, 2, 2), 2), ((2, 1), None), ((3, 1, 4, 3), 2), ((4,), None)):
        before = len(encoder.asked)
        features = remembered(frames(*shades))
        assert features.tolist() == [[12.0 * shade] * 2 for shade in shades]
        assert encoder.asked[before:] == ([] if new is None else [new])


@torch.no_grad()
def test_the_frame_seen_longest_ago_is_forgotten_first() -> None:
    encoder = CountingEncoder()
    remembered = RememberedFrames(encoder, capacity=3)
    remembered(frames(1, 2, 3))
    remembered(frames(1))
    remembered(frames(4))  # 2 goes
    remembered(frames(1, 3, 4))
    assert encoder.asked == [3, 1]
    remembered(frames(2))
    assert encoder.asked == [3, 1, 1]
    assert remembered(frames(5, 6, 7, 8, 9)).tolist() == [[12.0 * shade] * 2 for shade in range(5, 10)]


@torch.no_grad()
def test_what_was_given_out_is_nobody_elses() -> None:
    remembered = RememberedFrames(CountingEncoder())
    remembered(frames(1)).zero_()
    assert remembered(frames(1)).tolist() == [[12.0, 12.0]]


def test_new_weights_make_it_forget() -> None:
    encoder = CountingEncoder()
    remembered = RememberedFrames(encoder)
    with torch.no_grad():
        remembered(frames(1))
        encoder.weight.mul_(2)
        assert remembered(frames(1)).tolist() == [[24.0, 24.0]]
    optimizer = torch.optim.SGD(encoder.parameters(), lr=1.0)
    remembered(frames(1)).sum().backward()  # gradients go through, remembered or not
    optimizer.step()
    with torch.no_grad():
        assert remembered(frames(1)).tolist() == [[-120.0, -120.0]]


def make(memory: Any, encoder: Any = "conv") -> Policy:
    network = NetworkConfig(encoder=encoder, features=16, memory=memory)
    policy = make_policy(SPEC, network, torch.Generator().manual_seed(0), torch.device("cpu")).eval()
    policy.policy_head.weight.data *= 60
    return policy


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_a_policy_for_play_plays_the_same_episodes(memory: str) -> None:
    policy = make(memory)
    frozen = for_play(plain_copy(policy))
    assert isinstance(frozen.encode, RememberedFrames) and not isinstance(policy.encode, RememberedFrames)
    played = []
    for own in (policy, frozen):
        env = make_env("minimaze", levels="100:10", num_envs=4, seed=1, max_cells=3, time_limit=25)
        played.append(evaluate(PolicyAgent(own), env, episodes=20).episodes)
    assert played[0] == played[1] and any(episode.solved for episode in played[0])


def test_a_copy_to_train_on_remembers_nothing() -> None:
    frozen = for_play(make("none"))
    copy = plain_copy(frozen)
    assert copy.encode == copy.encoder.forward and copy.encoder is not frozen.encoder


def test_dense_policies_stay_what_they_are() -> None:
    assert not isinstance(for_play(make("none", "small")).encode, RememberedFrames)
