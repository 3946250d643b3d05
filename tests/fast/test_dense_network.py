"""DenseNetwork compared with `Policy.forward` and autograd."""

import pytest
import torch

from expgen.envs.vec_env import EnvSpec
from expgen.fast.dense_network import DenseNetwork
from expgen.networks.actor_critic import NetworkConfig, Policy, make_policy

SPEC = EnvSpec("toy", (7,), "float32", 4)


def make() -> Policy:
    policy = make_policy(SPEC, NetworkConfig(features=16), torch.Generator().manual_seed(0), torch.device("cpu"))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    return policy


def inputs(num_rows: int) -> torch.Tensor:
    x = torch.randn(num_rows, 8, generator=torch.Generator().manual_seed(num_rows))
    x[:, -1] = 1
    return x


def plain(policy: Policy, x: torch.Tensor) -> torch.Tensor:
    output = policy(x[None, :, :-1], torch.zeros(1, len(x), dtype=torch.bool), torch.zeros(len(x), 0))
    return torch.cat([output.logits[0].t(), output.value])  # [A+1, B]


@pytest.mark.parametrize("num_rows", [1, 5, 64])
def test_outputs_and_gradients_match_autograd(num_rows: int):
    policy = make()
    x = inputs(num_rows)
    expected = plain(policy, x)
    d_output = torch.randn(expected.shape, generator=torch.Generator().manual_seed(2))
    names = [name for name, _ in policy.named_parameters()]
    expected_gradients = dict(zip(names, torch.autograd.grad(expected, list(policy.parameters()), d_output)))
    network = DenseNetwork(policy)
    with torch.no_grad():
        torch.testing.assert_close(network.forward(x), expected)
        gradient = network.backward(x, d_output)
    got = network.layers_of(gradient).by_name()
    assert got.keys() == expected_gradients.keys()
    for name in names:
        torch.testing.assert_close(got[name], expected_gradients[name], rtol=1e-4, atol=1e-5)


def test_policy_parameters_are_views_of_the_flat_weights():
    policy, untouched = make(), make()
    network = DenseNetwork(policy)
    before, expected = policy.state_dict(), untouched.state_dict()
    assert list(before) == list(expected)
    assert all(torch.equal(before[name], expected[name]) for name in expected)
    assert network.weight.numel() == sum(parameter.numel() for parameter in policy.parameters())
    network.weight.mul_(0.5)
    with torch.no_grad():
        for parameter in untouched.parameters():
            parameter.mul_(0.5)
        torch.testing.assert_close(plain(policy, inputs(9)), plain(untouched, inputs(9)))


def test_forward_with_another_batch_size_keeps_activations():
    """Acting and minibatches of two sizes share one network."""
    network = DenseNetwork(make())
    d_output = torch.ones(5, 8)
    with torch.no_grad():
        network.forward(inputs(8))
        expected = network.backward(inputs(8), d_output).clone()
        network.forward(inputs(8))
        network.forward(inputs(3))
        assert torch.equal(network.backward(inputs(8), d_output), expected)
