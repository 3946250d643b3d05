"""ImpalaEncoder against the paper's formula, layer by layer."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from expgen.networks.impala import ImpalaEncoder, ResidualBlock


def make(obs_shape: tuple[int, ...] = (64, 64, 3), features: int = 256) -> ImpalaEncoder:
    encoder = ImpalaEncoder(obs_shape, features)
    encoder.initialise(torch.Generator().manual_seed(0))
    return encoder


def plain_forward(weights: dict[str, torch.Tensor], obs: np.ndarray) -> torch.Tensor:
    """Floats, channels first, /255; conv, pool and two pre-activation blocks three times; ReLU, linear, ReLU."""

    def conv(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], padding=1)

    x = torch.tensor(np.ascontiguousarray(np.moveaxis(obs, 3, 1)).astype(np.float32) / 255)
    for stage in range(3):
        x = F.max_pool2d(conv(x, f"stages.{stage}.conv"), 3, stride=2, padding=1)
        for block in ("block1", "block2"):
            inner = conv(x.clamp(min=0), f"stages.{stage}.{block}.conv1")
            x = x + conv(inner.clamp(min=0), f"stages.{stage}.{block}.conv2")
    x = x.clamp(min=0).reshape(len(x), -1)
    return (x @ weights["linear.weight"].T + weights["linear.bias"]).clamp(min=0)


@pytest.mark.parametrize("obs_shape", [(64, 64, 3), (35, 41, 3), (32, 48, 1)])
def test_impala_forward_matches_the_formula(obs_shape: tuple[int, ...]):
    encoder = make(obs_shape, 16)
    generator = torch.Generator().manual_seed(1)
    for name, parameter in encoder.named_parameters():
        if name.endswith("bias"):
            parameter.data.normal_(0, 0.1, generator=generator)
    obs = np.random.default_rng(0).integers(256, size=(2, *obs_shape), dtype=np.uint8)
    with torch.no_grad():
        output = encoder(torch.from_numpy(obs))
    assert output.dtype == torch.float32
    torch.testing.assert_close(output, plain_forward(encoder.state_dict(), obs), rtol=1e-4, atol=1e-5)
    assert output.any()


def test_encoder_in_bfloat16_is_close_to_float32():
    encoder = make((64, 64, 3))
    obs = torch.randint(256, (8, 64, 64, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        exact = encoder(obs)
        encoder.is_bfloat16 = True
        rounded = encoder(obs)
    error = (rounded - exact).norm() / exact.norm()
    assert rounded.dtype == torch.float32 and 0 < error < 0.02


def test_residual_skip_is_taken_before_the_relu():
    """Of the two common variants we use this one: a block whose second convolution is zero is the identity."""
    block = ResidualBlock(4)
    torch.nn.init.zeros_(block.conv2.weight)
    torch.nn.init.zeros_(block.conv2.bias)
    x = torch.randn(2, 4, 5, 5, generator=torch.Generator().manual_seed(0))
    before = x.clone()
    assert torch.equal(block(x), before) and (before < 0).any()


def test_impala_initialisation_is_xavier_uniform_with_zero_biases():
    encoder = make()
    for name, parameter in encoder.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
            continue
        area = 9 if parameter.dim() == 4 else 1
        bound = (6 / (area * (parameter.shape[0] + parameter.shape[1]))) ** 0.5
        assert 0.97 * bound < parameter.abs().max() <= bound, name
        assert parameter.std().item() == pytest.approx(bound / 3**0.5, rel=0.1), name


def test_impala_stages_have_16_32_32_channels_and_end_at_8_by_8():
    shapes = {name: tuple(weight.shape) for name, weight in make().state_dict().items()}
    assert [shapes[f"stages.{i}.conv.weight"][:2] for i in range(3)] == [(16, 3), (32, 16), (32, 32)]
    assert shapes["linear.weight"] == (256, 2048)
