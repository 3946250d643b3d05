"""SmallEncoder against its formula."""

import pytest
import torch

from expgen.networks.small import SmallEncoder


@pytest.mark.parametrize("is_pixels", [True, False])
def test_small_encoder_is_two_dense_relu_layers(is_pixels: bool):
    """Pixels are scaled from 0..255 to −1..1; vectors are unchanged."""
    encoder = SmallEncoder((2, 3, 1), 8, is_pixels)
    encoder.initialise(torch.Generator().manual_seed(0))
    encoder.linear1.bias.data.fill_(0.1)
    obs = torch.arange(0, 240, 20).view(2, 2, 3, 1)
    obs = obs.to(torch.uint8) if is_pixels else obs.float()
    before = obs.clone()
    x = obs.reshape(2, 6).float()
    x = (x - 127.5) / 127.5 if is_pixels else x
    x = (x @ encoder.linear1.weight.T + 0.1).clamp(min=0)
    x = (x @ encoder.linear2.weight.T).clamp(min=0)
    torch.testing.assert_close(encoder(obs), x)
    assert torch.equal(obs, before)


def test_small_encoder_initialisation_is_orthogonal_with_gain_root_two():
    encoder = SmallEncoder((16,), 8, False)
    encoder.initialise(torch.Generator().manual_seed(0))
    for layer in (encoder.linear1, encoder.linear2):
        torch.testing.assert_close(layer.weight @ layer.weight.T, 2 * torch.eye(8))  # rows of norm √2
        assert not layer.bias.any()
