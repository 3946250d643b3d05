"""Saving and loading networks and optimisers as flat dictionaries."""

import pytest
import torch
from torch import nn

from expgen.algorithms.ppo import PPO, PPOConfig
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, make_policy
from expgen.networks.state import load_module, under_prefix, with_prefix
from tests.batches import GivenBatch

PICTURES = EnvSpec("toy", (8, 8, 3), "uint8", 4)
IMPALA = NetworkConfig(encoder="impala", features=8)
CPU = torch.device("cpu")


def make_ppo(seed: int) -> PPO:
    return PPO(make_policy(PICTURES, IMPALA, torch.Generator().manual_seed(seed), CPU), PPOConfig())


def make_batch(seed: int) -> GivenBatch:
    generator = torch.Generator().manual_seed(seed)
    obs = torch.randint(256, (2, 3, 8, 8, 3), dtype=torch.uint8, generator=generator)
    floats = [torch.randn(2, 3, generator=generator) for _ in range(4)]
    action = torch.randint(4, (2, 3), generator=generator)
    return GivenBatch(obs, torch.zeros(2, 3, dtype=torch.bool), torch.zeros(3, 0), action, *floats)


def test_tensor_name_prefixes_round_trip():
    tensors = {"a.b": torch.zeros(1), "c": torch.ones(1)}
    both = {**with_prefix("x", tensors), **with_prefix("xy", {"z": torch.zeros(2)})}
    assert list(both) == ["x.a.b", "x.c", "xy.z"]
    assert under_prefix("x", both) == tensors


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weight": torch.zeros(2, 4), "bias": torch.zeros(2)}, r"weight is \(2, 4\); accepted: \(2, 3\)"),
        ({"weight": torch.zeros(2, 3)}, r"bias is absent; accepted: \(2,\)"),
        (
            {"weight": torch.zeros(2, 3), "bias": torch.zeros(2), "extra": torch.zeros(1)},
            r"extra is \(1,\); accepted: absent",
        ),
    ],
)
def test_load_module_rejects_weights_of_another_network(given: dict[str, torch.Tensor], message: str):
    module = nn.Linear(3, 2)
    before = module.weight.clone()
    with pytest.raises(InputError, match=f"some.file holds another network: {message}"):
        load_module(module, given, "some.file")
    assert torch.equal(module.weight, before)


def test_load_module_takes_the_weights():
    module = nn.Linear(3, 2)
    load_module(module, {"weight": torch.full((2, 3), 5.0), "bias": torch.full((2,), 6.0)}, "it")
    assert (module.weight == 5).all() and (module.bias == 6).all()


def test_loaded_optimizer_keeps_memory_layout_and_continues_identically():
    """Checkpoints contain contiguous tensors; fused Adam needs channels-last moments, like the weights."""
    original = make_ppo(0)
    for seed in range(2):
        original.step(make_batch(seed))
    stored = {name: tensor.detach().clone().contiguous() for name, tensor in original.state().items()}
    resumed = make_ppo(1)
    resumed.load_state(stored)
    weight = resumed.policy.encoder.stages[1].conv.weight
    assert weight.is_contiguous(memory_format=torch.channels_last) and not weight.is_contiguous()
    for parameter in resumed.policy.parameters():
        entry = resumed.descent.adam.state[parameter]
        assert entry["step"].item() == 2
        assert entry["exp_avg"].stride() == entry["exp_avg_sq"].stride() == parameter.stride()
    for seed in range(2, 4):
        metrics = [ppo.step(make_batch(seed)) for ppo in (original, resumed)]
        assert metrics[0]["loss"] == metrics[1]["loss"]
    state, other = original.state(), resumed.state()
    assert state.keys() == other.keys()
    assert all(torch.equal(state[name], other[name]) for name in state)


def test_state_contains_every_weight_and_its_adam_moments():
    ppo = make_ppo(0)
    ppo.step(make_batch(0))
    state = ppo.state()
    weights = under_prefix("policy", state)
    assert weights.keys() == ppo.policy.state_dict().keys()
    assert len(under_prefix("adam", state)) == 3 * len(weights)
