"""ConvEncoder against its formula, and the observations it accepts."""

import pytest
import torch
from torch.nn import functional as F

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, make_encoder
from expgen.networks.small import ConvEncoder


def make_conv() -> ConvEncoder:
    encoder = ConvEncoder((7, 5, 3), 6)
    encoder.initialise(torch.Generator().manual_seed(0))
    return encoder


def test_conv_encoder_matches_its_formula() -> None:
    encoder = make_conv()
    obs = torch.randint(0, 256, (2, 7, 5, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    x = (obs.double() / 127.5 - 1).permute(0, 3, 1, 2)
    for conv, stride in ((encoder.conv1, 1), (encoder.conv2, 2)):
        x = F.conv2d(x, conv.weight.double(), conv.bias.double(), stride=stride, padding=1).relu()
    assert x.shape == (2, 32, 4, 3)
    dense = encoder.linear.double()
    x = F.linear(x.permute(0, 2, 3, 1).reshape(2, -1), dense.weight, dense.bias).relu()
    encoder.float()
    torch.testing.assert_close(encoder(obs).double(), x, rtol=1e-4, atol=1e-5)


def test_conv_encoder_initialisation_is_orthogonal_with_zero_biases() -> None:
    encoder = make_conv()
    rows = encoder.conv1.weight.flatten(1)
    torch.testing.assert_close(rows @ rows.T, 2 * torch.eye(16), rtol=1e-4, atol=1e-4)
    assert all(not layer.bias.any() for layer in (encoder.conv1, encoder.conv2, encoder.linear))


def test_conv_encoder_is_selected_by_name_and_needs_images() -> None:
    spec = EnvSpec("minimaze", (11, 11, 3), "uint8", 5)
    assert isinstance(make_encoder(spec, NetworkConfig(encoder="conv")), ConvEncoder)
    vector = EnvSpec("gymnasium:CartPole-v1", (4,), "float32", 2)
    with pytest.raises(InputError, match=r"--encoder is conv but gymnasium:CartPole-v1 has observations \(4,\)"):
        make_encoder(vector, NetworkConfig(encoder="conv"))
