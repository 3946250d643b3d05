"""CachedEncoder encodes each frame once and returns the same features as its encoder."""

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
    """Returns each frame's sum times a weight, and records its batch sizes."""

    def __init__(self, features: int = 2) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features), requires_grad=False)
        self.batches: list[int] = []

    def forward(self, obs: Tensor) -> Tensor:
        self.batches.append(len(obs))
        return obs.flatten(1).sum(1, keepdim=True) * self.weight


def frames(*shades: int) -> Tensor:
    return torch.tensor(shades, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 2, 2, 3)


@torch.no_grad()
def test_cached_encoder_encodes_each_frame_once() -> None:
    encoder = CountingEncoder()
    cached = CachedEncoder(encoder)
    for shades, new in (((1, 2, 2), 2), ((2, 1), None), ((3, 1, 4, 3), 2), ((4,), None)):
        before = len(encoder.batches)
        features = cached(frames(*shades))
        assert features.tolist() == [[12.0 * shade] * 2 for shade in shades]
        assert encoder.batches[before:] == ([] if new is None else [new])


@torch.no_grad()
def test_full_cache_is_cleared() -> None:
    encoder = CountingEncoder()
    cached = CachedEncoder(encoder, capacity=3)
    cached(frames(1, 2))
    cached(frames(2, 3, 1))
    assert cached(frames(1, 4)).tolist() == [[12.0] * 2, [48.0] * 2]  # the fourth frame does not fit
    cached(frames(4, 1, 5))
    assert encoder.batches == [2, 1, 2, 1]
    for _ in range(2):  # more frames than its capacity
        assert cached(frames(5, 6, 7, 8)).tolist() == [[12.0 * shade] * 2 for shade in range(5, 9)]
    cached(frames(1, 4))
    assert encoder.batches[4:] == [4, 4]


@torch.no_grad()
def test_empty_batch_has_no_features() -> None:
    assert CachedEncoder(CountingEncoder())(frames()).shape == (0, 2)


@torch.no_grad()
def test_returned_features_do_not_alias_the_cache() -> None:
    cached = CachedEncoder(CountingEncoder())
    cached(frames(1)).zero_()
    assert cached(frames(1)).tolist() == [[12.0, 12.0]]


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
def test_changed_weights_clear_the_cache(change: Callable[[CountingEncoder], None]) -> None:
    encoder = CountingEncoder()
    cached = CachedEncoder(encoder)
    cached(frames(1))
    change(encoder)
    features = cached(frames(1))
    assert features.tolist() == [[24.0, 36.0]] and features.dtype == encoder.weight.dtype


@torch.no_grad()
def test_new_weight_at_an_old_address_clears_the_cache() -> None:
    """The allocator soon reuses the address of a freed weight of this size."""
    encoder = CountingEncoder(1000)
    cached, address = CachedEncoder(encoder), encoder.weight.data_ptr()
    cached(frames(1))
    for _ in range(100):
        encoder.weight.data = torch.full((1000,), 2.0)
        if encoder.weight.data_ptr() == address:
            break
    assert cached(frames(1)).unique().tolist() == [24.0]


@pytest.mark.parametrize("make_optimizer", OPTIMIZERS)
def test_cache_is_never_stale_during_training(make_optimizer: Callable[..., torch.optim.Optimizer]) -> None:
    """Fused Adam on the CPU modifies weights without changing their version."""
    encoder = CountingEncoder()
    cached = CachedEncoder(encoder)
    with torch.no_grad():
        cached(frames(1))
    encoder.weight.requires_grad_()
    optimizer = make_optimizer(encoder.parameters(), lr=1.0)
    cached(frames(1)).sum().backward()  # gradients go through
    for is_frozen in (False, True):
        optimizer.step()
        encoder.weight.requires_grad_(not is_frozen)
        with torch.no_grad():
            assert torch.equal(cached(frames(1)), encoder(frames(1)))
    assert (encoder.weight < 0).all()


@torch.no_grad()
def test_functional_call_with_other_weights_is_not_cached() -> None:
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
def test_policy_for_play_plays_the_same_episodes(memory: str) -> None:
    policy = make(memory)
    frozen = for_play(policy)
    assert isinstance(frozen.encode, CachedEncoder) and not isinstance(policy.encode, CachedEncoder)
    played = []
    for own in (policy, frozen):
        env = make_env("minimaze", levels="100:10", num_envs=4, seed=1, max_cells=3, time_limit=25)
        played.append(evaluate(PolicyAgent(own), env, episodes=20).episodes)
    assert played[0] == played[1] and any(episode.solved for episode in played[0])


def test_policy_for_play_has_no_gradients() -> None:
    frozen = for_play(make("none"))
    with pytest.raises(RuntimeError, match="does not require grad"):
        frozen(*question(4)).value.sum().backward()


def test_plain_copy_of_a_policy_for_play_has_no_cache() -> None:
    frozen = for_play(make("none"))
    copy = plain_copy(frozen)
    assert copy.encode == copy.encoder.forward and copy.encoder is not frozen.encoder


def test_deep_encoder_is_cached_once() -> None:
    config = NetworkConfig(encoder="conv", features=16, extra_layers=1)
    policy = for_play(make_policy(SPEC, config, torch.Generator().manual_seed(0), torch.device("cpu")))
    assert isinstance(policy.encode, CachedEncoder) and isinstance(policy.encoder, DeepEncoder)
    assert policy.encoder.encode == policy.encoder.encoder.forward


def test_dense_policies_are_not_cached() -> None:
    assert not isinstance(for_play(make("none", "small")).encode, CachedEncoder)
