"""Two networks that share nothing: the policy, which acts, and a value network that only training asks (DAAC, PPG)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, Policy, fresh_network, make_encoder, make_policy
from expgen.networks.small import orthogonal


class ValueNetwork(nn.Module):
    """An encoder of its own and a value head; no memory."""

    def __init__(self, spec: EnvSpec, config: NetworkConfig) -> None:
        super().__init__()
        self.encoder = make_encoder(spec, config)
        self.encode: Callable[[Tensor], Tensor] = self.encoder.forward  # fast_networks may put a faster one here
        self.value_head = nn.Linear(config.features, 1)

    def forward(self, obs: Tensor) -> Tensor:
        """`obs` `[T, N, …]` → V `[T, N]`."""
        return self.value_head(self.encode(obs.flatten(0, 1))).view(obs.shape[:2])

    def initialise(self, generator: torch.Generator) -> None:
        """Fresh weights from `generator` alone: the head orthogonal with gain 1."""
        self.encoder.initialise(generator)
        orthogonal((self.value_head,), 1.0, generator)


class Decoupled(NamedTuple):
    """What an algorithm with separate networks is built from."""

    policy: Policy  # its second head serves the algorithm: V_aux in PPG, the advantage in DAAC
    value: ValueNetwork
    generator: torch.Generator  # on the CPU: initialises what the algorithm adds


def make_decoupled(spec: EnvSpec, config: NetworkConfig, generator: torch.Generator, device: torch.device) -> Decoupled:
    """Policy, then value network, with fresh weights."""
    if config.memory != "none":
        raise InputError(f"--memory is {config.memory} but a separate value network has none; accepted: none")
    policy = make_policy(spec, config, generator, device)
    value = fresh_network(lambda: ValueNetwork(spec, config), generator, device)
    return Decoupled(policy, value, generator)
