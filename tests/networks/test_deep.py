"""DeepEncoder: dense layers after an encoder."""

import torch

from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import NetworkConfig, make_policy
from expgen.networks.deep import DeepEncoder

PROCGEN = EnvSpec("procgen:maze", (64, 64, 3), "uint8", 15)


def test_extra_layers_come_after_the_encoder():
    """LEEP's members: 757,840 parameters for ProcGen, as in the original code."""
    config = NetworkConfig(extra_layers=2)
    policy = make_policy(PROCGEN, config, torch.Generator().manual_seed(0), torch.device("cpu"))
    assert sum(parameter.numel() for parameter in policy.parameters()) == 757_840
    deep = policy.encoder
    assert isinstance(deep, DeepEncoder)
    for layer in deep.layers:
        torch.testing.assert_close(layer.weight @ layer.weight.T, torch.eye(256), atol=1e-4, rtol=0)
    obs = torch.randint(256, (2, 64, 64, 3), dtype=torch.uint8)
    with torch.no_grad():
        x = deep.encoder(obs)
        for layer in deep.layers:
            x = (x @ layer.weight.T + layer.bias).clamp(min=0)
        torch.testing.assert_close(deep(obs), x)
