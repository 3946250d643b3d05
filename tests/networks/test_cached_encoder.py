"""Frames seen before are not computed again, and nothing else is different."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from expgen.agents.agent import PolicyAgent
from expgen.envs.make import make_env
from expgen.envs.vec_env import EnvSpec
from expgen.evaluation.evaluate import evaluate
from expgen.fast.fast_networks import for_play
from expgen.networks.actor_critic import NetworkConfig, Policy, make_policy
from expgen.networks.cached_encoder import CachedEncoder
from expgen.networks.deep import DeepEncoder
from expgen.networks.plain_copy import plain_copy

SPEC = EnvSpec("minimaze", (7, 7, 3), "uint8", 5)
OPTIMIZERS = [torch.optim.SGD, torch.optim.Adam, partial(torch.optim.Adam, fused=True)]


class CountingEncoder(nn.Module):
    """Sums each frame, times a weight, and counts the frames it was asked about."""

    def __init__(self, features: int = 2) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features), requires_grad=False)
        self.asked: list[int] = []

    def forward(self, obs: Tensor) -> Tensor:
        self.asked.append(len(obs))
        return obs.flatten(1).sum(1, keepdim=True) * self.weight


def frames(*shades: int) -> Tensor:
    return torch.tensor(shades, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 2, 2, 3)


@torch.no_grad()
def test_a_frame_is_computed_once() -> None:
    encoder = CountingEncoder()
    remembered = CachedEncoder(encoder)
    for shades, new in (((1, 2, 2), 2), ((2, 1), None), ((3, 1, 4, 3), 2), ((4,), None)):
        before = len(encoder.asked)
        features = remembered(frames(*shades))
        assert features.tolist() == [[12.0 * shade] * 2 for shade in shades]
        assert encoder.asked[before:] == ([] if new is None else [new])


@torch.no_grad()
def test_when_full_it_forgets_all() -> None:
    encoder = CountingEncoder()
    remembered = CachedEncoder(encoder, capacity=3)
    remembered(frames(1, 2))
    remembered(frames(2, 3, 1))
    assert remembered(frames(1, 4)).tolist() == [[12.0] * 2, [48.0] * 2]  # no room for the fourth
    remembered(frames(4, 1, 5))
    assert encoder.asked == [2, 1, 2, 1]
    for _ in range(2):  # more than it can ever keep
        assert remembered(frames(5, 6, 7, 8)).tolist() == [[12.0 * shade] * 2 for shade in range(5, 9)]
    remembered(frames(1, 4))
    assert encoder.asked[4:] == [4, 4]


@torch.no_grad()
def test_no_frames_have_no_features() -> None:
    assert CachedEncoder(CountingEncoder())(frames()).shape == (0, 2)


@torch.no_grad()
def test_what_was_given_out_is_nobody_elses() -> None:
    remembered = CachedEncoder(CountingEncoder())
    remembered(frames(1)).zero_()
    assert remembered(frames(1)).tolist() == [[12.0, 12.0]]


def replace_weight(encoder: CountingEncoder) -> None:
    encoder.load_state_dict({"weight": torch.tensor([2.0, 3.0])}, assign=True)


def replace_data(encoder: CountingEncoder) -> None:
    encoder.weight.data = torch.tensor([2.0, 3.0])


def write_weight(encoder: CountingEncoder) -> None:
    encoder.load_state_dict({"weight": torch.tensor([2.0, 3.0])})


def make_double(encoder: CountingEncoder) -> None:
    encoder.double()
    write_weight(encoder)


@pytest.mark.parametrize("change", [replace_weight, replace_data, write_weight, make_double])
@torch.no_grad()
def test_new_weights_make_it_forget(change: Callable[[CountingEncoder], None]) -> None:
    encoder = CountingEncoder()
    remembered = CachedEncoder(encoder)
    remembered(frames(1))
    change(encoder)
    features = remembered(frames(1))
    assert features.tolist() == [[24.0, 36.0]] and features.dtype == encoder.weight.dtype


@torch.no_grad()
def test_a_weight_is_not_taken_for_one_whose_place_in_memory_it_has() -> None:
    """A thousand numbers soon come to lie where others lay that were given up."""
    encoder = CountingEncoder(1000)
    remembered, address = CachedEncoder(encoder), encoder.weight.data_ptr()
    remembered(frames(1))
    for _ in range(100):
        encoder.weight.data = torch.full((1000,), 2.0)
        if encoder.weight.data_ptr() == address:
            break
    assert remembered(frames(1)).unique().tolist() == [24.0]


def test_other_precision_is_kept_apart() -> None:
    encoder = CountingEncoder()
    remembered = CachedEncoder(encoder)
    with torch.no_grad():
        found = [remembered(frames(1)).dtype]
        encoder.double()
        found.append(remembered(frames(1)).dtype)
    assert found == [torch.float32, torch.float64]


@pytest.mark.parametrize("make_optimizer", OPTIMIZERS)
def test_weights_that_learn_are_never_stale(make_optimizer: Callable[..., torch.optim.Optimizer]) -> None:
    """Fused Adam on the CPU writes without torch's counting it."""
    encoder = CountingEncoder()
    remembered = CachedEncoder(encoder)
    with torch.no_grad():
        remembered(frames(1))
    encoder.weight.requires_grad_()
    optimizer = make_optimizer(encoder.parameters(), lr=1.0)
    remembered(frames(1)).sum().backward()  # gradients go through
    for is_frozen in (False, True):
        optimizer.step()
        encoder.weight.requires_grad_(not is_frozen)
        with torch.no_grad():
            assert torch.equal(remembered(frames(1)), encoder(frames(1)))
    assert (encoder.weight < 0).all()


@torch.no_grad()
def test_other_weights_for_one_call_are_used_and_not_remembered() -> None:
    policy = make("none")
    frozen, asked = for_play(policy), question(4)
    frozen(*asked)
    other = {name: 2 * weight for name, weight in policy.state_dict().items()}
    for weights in (other, dict(policy.state_dict())):
        found, exact = (functional_call(own, weights, asked) for own in (frozen, policy))
        torch.testing.assert_close(found, exact)


def make(memory: Any, encoder: Any = "conv") -> Policy:
    network = NetworkConfig(encoder=encoder, features=16, memory=memory)
    policy = make_policy(SPEC, network, torch.Generator().manual_seed(0), torch.device("cpu")).eval()
    policy.policy_head.weight.data *= 60
    return policy


def question(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """One step of `count` environments, for a policy without memory."""
    obs = torch.randint(256, (1, count, *SPEC.obs_shape), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    return obs, torch.zeros(1, count, dtype=torch.bool), torch.zeros(count, 0)


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_a_policy_for_play_plays_the_same_episodes(memory: str) -> None:
    policy = make(memory)
    frozen = for_play(policy)
    assert isinstance(frozen.encode, CachedEncoder) and not isinstance(policy.encode, CachedEncoder)
    played = []
    for own in (policy, frozen):
        env = make_env("minimaze", levels="100:10", num_envs=4, seed=1, max_cells=3, time_limit=25)
        played.append(evaluate(PolicyAgent(own), env, episodes=20).episodes)
    assert played[0] == played[1] and any(episode.solved for episode in played[0])


def test_what_is_made_for_play_cannot_be_trained() -> None:
    frozen = for_play(make("none"))
    with pytest.raises(RuntimeError, match="does not require grad"):
        frozen(*question(4)).value.sum().backward()


def test_a_copy_to_train_on_remembers_nothing() -> None:
    frozen = for_play(make("none"))
    copy = plain_copy(frozen)
    assert copy.encode == copy.encoder.forward and copy.encoder is not frozen.encoder


def test_layers_on_top_of_an_encoder_do_not_remember_twice() -> None:
    config = NetworkConfig(encoder="conv", features=16, extra_layers=1)
    policy = for_play(make_policy(SPEC, config, torch.Generator().manual_seed(0), torch.device("cpu")))
    assert isinstance(policy.encode, CachedEncoder) and isinstance(policy.encoder, DeepEncoder)
    assert policy.encoder.encode == policy.encoder.encoder.forward


def test_dense_policies_remember_nothing() -> None:
    assert not isinstance(for_play(make("none", "small")).encode, CachedEncoder)
