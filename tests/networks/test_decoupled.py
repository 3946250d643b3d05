"""Decoupled networks share no weights and depend only on the seed."""

import pytest
import torch
from torch import nn

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, make_policy
from expgen.networks.decoupled import Decoupled, make_decoupled

SPEC = EnvSpec("toy", (3,), "float32", 4)
PICTURES = EnvSpec("toy", (64, 64, 3), "uint8", 15)
CPU = torch.device("cpu")


def make(spec: EnvSpec = SPEC, seed: int = 0, **options: object) -> Decoupled:
    config = NetworkConfig(**{"features": 8, **options})  # type: ignore[arg-type]
    return make_decoupled(spec, config, torch.Generator().manual_seed(seed), CPU)


def weights(network: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])


def test_decoupled_networks_share_no_weights():
    networks = make()
    addresses = [{p.data_ptr() for p in network.parameters()} for network in (networks.policy, networks.value)]
    assert not addresses[0] & addresses[1]
    assert not torch.equal(networks.policy.encoder.linear1.weight, networks.value.encoder.linear1.weight)


def test_decoupled_weights_depend_only_on_the_seed():
    one, same, other = make(seed=3), make(seed=3), make(seed=4)
    for index in (0, 1):
        assert torch.equal(weights(one[index]), weights(same[index]))
        assert not torch.equal(weights(one[index]), weights(other[index]))
    alone = make_policy(SPEC, NetworkConfig(features=8), torch.Generator().manual_seed(3), CPU)
    assert torch.equal(weights(one.policy), weights(alone))  # the same network as PPO's


def test_value_head_is_orthogonal_with_gain_1_and_zero_bias():
    head = make().value.value_head
    assert head.weight.norm().item() == pytest.approx(1) and not head.bias.any()


def test_value_network_equals_frame_by_frame_values():
    network, obs = make(PICTURES, encoder="impala").value, torch.randint(256, (2, 3, 64, 64, 3), dtype=torch.uint8)
    value = network(obs)
    assert value.shape == (2, 3)
    torch.testing.assert_close(value[1, 2], network(obs[1:, 2:])[0, 0])


def test_decoupled_parameter_count_matches_daacs_authors():
    """1,248,672, counting the advantage head's one weight for each of the 15 actions."""
    networks = make(PICTURES, features=256)
    assert len(weights(networks.policy)) + len(weights(networks.value)) + 15 == 1_248_672


def test_decoupled_networks_reject_memory():
    with pytest.raises(InputError, match="--memory is gru but a separate value network has none; accepted: none"):
        make(memory="gru")
