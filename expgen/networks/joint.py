"""JointPolicy: several policies that are trained together and act as one (LEEP)."""

import torch
from torch import Tensor, nn

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, Policy, PolicyOutput


def log_max_policy(logits: Tensor) -> Tensor:
    """log π̄(a|o) `[…, A]`, π̄(a|o) = max_i π_i(a|o) / Σ_a' max_i π_i(a'|o), from the members' `logits` `[M, …, A]`."""
    return torch.log_softmax(torch.log_softmax(logits, -1).amax(0), -1)


class JointPolicy(nn.Module):
    """M members without memory, called like a Policy.

    In training mode each member acts in its own environments: the N environments are split among the members in order,
    so N must be a multiple of M. In evaluation mode the logits are log π̄, and the value is the members' mean.
    """

    state_size = 0

    def __init__(self, spec: EnvSpec, config: NetworkConfig, num_members: int) -> None:
        super().__init__()
        if config.memory != "none":
            raise InputError(f"--memory is {config.memory} but joint policies have none; accepted: none")
        self.members = nn.ModuleList(Policy(spec, config) for _ in range(num_members))

    def forward(self, obs: Tensor, first: Tensor, state: Tensor) -> PolicyOutput:
        """Run the members on `obs` `[T, N, …]`, `first` `[T, N]` and `state` `[N, 0]`."""
        if self.training:
            M = len(self.members)
            inputs = zip(obs.chunk(M, 1), first.chunk(M, 1), state.chunk(M, 0), strict=True)
            outputs = [member(*own) for member, own in zip(self.members, inputs, strict=True)]
            logits = torch.cat([output.logits for output in outputs], 1)
            return PolicyOutput(logits, torch.cat([output.value for output in outputs], 1), state)
        outputs = [member(obs, first, state) for member in self.members]
        logits = log_max_policy(torch.stack([output.logits for output in outputs]))
        return PolicyOutput(logits, torch.stack([output.value for output in outputs]).mean(0), state)

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Initialise the members in turn from the same generator, so that all differ."""
        for member in self.members:
            member.initialise(generator)  # type: ignore[operator]
