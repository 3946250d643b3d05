"""Separate policy and value networks (DAAC, IDAAC, PPG); the value network is used in training only."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, Policy, fresh_network, make_encoder, make_policy
from expgen.networks.small import orthogonal


class ValueNetwork(nn.Module):
    """An encoder and a value head, without memory."""

    def __init__(self, spec: EnvSpec, config: NetworkConfig) -> None:
        super().__init__()
        self.encoder = make_encoder(spec, config)
        self.encode: Callable[[Tensor], Tensor] = self.encoder.forward  # fast_networks may replace it
        self.value_head = nn.Linear(config.features, 1)

    def forward(self, obs: Tensor) -> Tensor:
        """Return V `[T, N]` of `obs` `[T, N, …]`."""
        return self.value_head(self.encode(obs.flatten(0, 1))).view(obs.shape[:2])

    def initialise(self, generator: torch.Generator) -> None:
        """Draw initial weights from `generator` only; the head is orthogonal with gain 1."""
        self.encoder.initialise(generator)
        orthogonal((self.value_head,), 1.0, generator)


class Decoupled(NamedTuple):
    """The networks of an algorithm with a separate value network."""

    policy: Policy  # its value head has another use: V_aux in PPG, the advantage in DAAC
    value: ValueNetwork
    generator: torch.Generator  # CPU generator for the weights that the algorithm adds


def make_decoupled(spec: EnvSpec, config: NetworkConfig, generator: torch.Generator, device: torch.device) -> Decoupled:
    """Build and initialise the policy, then the value network."""
    if config.memory != "none":
        raise InputError(f"--memory is {config.memory} but a separate value network has none; accepted: none")
    policy = make_policy(spec, config, generator, device)
    value = fresh_network(lambda: ValueNetwork(spec, config), generator, device)
    return Decoupled(policy, value, generator)
