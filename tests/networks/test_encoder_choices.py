"""Wide IMPALA and Impoola encoders: formula, sizes, and rejected options."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, make_encoder, make_policy
from expgen.networks.impala import ImpalaEncoder
from expgen.networks.plain_copy import plain_copy
from expgen.networks.small import ConvEncoder

PROCGEN = EnvSpec("procgen:maze", (64, 64, 3), "uint8", 15)
CPU = torch.device("cpu")


def pictures(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8))


def test_impoola_averages_over_positions():
    encoder = ImpalaEncoder((32, 40, 3), 16, width=2, is_pooled=True)
    encoder.initialise(torch.Generator().manual_seed(0))
    obs = pictures(2, 32, 40, 3)
    x = obs.permute(0, 3, 1, 2).float() / 255
    for stage in encoder.stages:
        x = stage(x)
    assert x.shape == (2, 64, 4, 5)
    mean = torch.stack([x[:, :, i, j].clamp(min=0) for i in range(4) for j in range(5)]).sum(0) / 20
    torch.testing.assert_close(encoder(obs), F.relu(encoder.linear(mean)))


@pytest.mark.parametrize(
    ("options", "channels", "inputs"),
    [
        ({"encoder": "impala", "width": 2}, [32, 64, 64], 64 * 64),
        ({"encoder": "impoola"}, [16, 32, 32], 32),
        ({"encoder": "impoola", "width": 3}, [48, 96, 96], 96),
    ],
)
def test_impala_channels_and_linear_inputs_by_width(options: dict[str, object], channels: list[int], inputs: int):
    with torch.device("meta"):
        encoder = make_encoder(PROCGEN, NetworkConfig(**options))  # type: ignore[arg-type]
    assert isinstance(encoder, ImpalaEncoder)
    assert [stage.conv.out_channels for stage in encoder.stages] == channels
    assert encoder.linear.in_features == inputs and encoder.linear.out_features == 256


def test_default_encoder_for_images_is_the_papers_impala():
    with torch.device("meta"):
        for encoder in (make_encoder(PROCGEN, NetworkConfig()), make_encoder(PROCGEN, NetworkConfig(encoder="impala"))):
            assert type(encoder) is ImpalaEncoder and (encoder.width, encoder.is_pooled) == (1, False)
        assert type(make_encoder(PROCGEN, NetworkConfig(encoder="conv"))) is ConvEncoder


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_wide_encoders_work_with_and_without_memory(memory: str):
    spec = EnvSpec("minimaze", (11, 11, 3), "uint8", 5)
    config = NetworkConfig(encoder="impoola", width=2, features=8, extra_layers=1, memory=memory)  # type: ignore[arg-type]
    policy = make_policy(spec, config, torch.Generator().manual_seed(0), CPU)
    first, state = torch.zeros(3, 2, dtype=torch.bool), torch.zeros(2, policy.state_size)
    output = policy(pictures(3, 2, 11, 11, 3), first, state)
    output.logits.sum().backward()
    assert output.logits.shape == (3, 2, 5) and output.value.shape == (3, 2)
    gradients = {name: parameter.grad for name, parameter in policy.named_parameters()}
    assert gradients["encoder.encoder.stages.0.conv.weight"].any()


def test_encoder_options_that_do_not_fit_are_rejected():
    vector = EnvSpec("gymnasium:CartPole-v1", (4,), "float32", 2)
    with pytest.raises(InputError, match=r"--encoder is impoola but gymnasium:CartPole-v1 .* accepted: small"):
        make_encoder(vector, NetworkConfig(encoder="impoola"))
    for encoder in ("conv", "small"):
        with pytest.raises(InputError, match=f"--width is 2 but the encoder is {encoder}; accepted: 1"):
            make_encoder(PROCGEN, NetworkConfig(encoder=encoder, width=2))  # type: ignore[arg-type]


def test_plain_copy_resets_accelerated_parts():
    config = NetworkConfig(encoder="impoola", features=8, extra_layers=1, memory="gru")
    policy = make_policy(EnvSpec("toy", (32, 32, 3), "uint8", 4), config, torch.Generator().manual_seed(0), CPU)
    policy.encoder.encode = lambda obs: torch.zeros(len(obs), 8)
    policy.encoder.encoder.is_bfloat16 = True
    policy.memory.scan = lambda x, first, state: torch.zeros_like(x)
    obs, first, state = pictures(2, 1, 32, 32, 3), torch.zeros(2, 1, dtype=torch.bool), torch.zeros(1, 8)
    plain = plain_copy(policy)
    assert not policy(obs, first, state).value.any() and plain(obs, first, state).value.any()
    assert not plain.encoder.encoder.is_bfloat16 and not plain.training
