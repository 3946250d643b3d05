"""JointPolicy: several policies that learn side by side and play as one (LEEP)."""

import torch
from torch import Tensor, nn

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, Policy, PolicyOutput


def log_max_policy(logits: Tensor) -> Tensor:
    """log of π̄(a|o) = max_i π_i(a|o) / Σ_a' max_i π_i(a'|o), from `logits` `[M, …, A]` → `[…, A]`."""
    return torch.log_softmax(torch.log_softmax(logits, -1).amax(0), -1)


class JointPolicy(nn.Module):
    """M memoryless members, called like a Policy.

    In training mode each member plays its own environments: columns are split among them in order, so their number
    must be a multiple of M. In evaluation mode all play π̄, the normalised maximum, as its own log-probabilities; the
    value is then the members' mean.
    """

    state_size = 0

    def __init__(self, spec: EnvSpec, config: NetworkConfig, num_members: int) -> None:
        super().__init__()
        if config.memory != "none":
            raise InputError(f"--memory is {config.memory} but joint policies have none; accepted: none")
        self.members = nn.ModuleList(Policy(spec, config) for _ in range(num_members))

    def forward(self, obs: Tensor, first: Tensor, state: Tensor) -> PolicyOutput:
        """`obs` `[T, N, …]`, `first` `[T, N]`, `state` `[N, 0]`."""
        if self.training:
            columns = (tensor.chunk(len(self.members), dim) for tensor, dim in ((obs, 1), (first, 1), (state, 0)))
            parts = [member(*column) for member, column in zip(self.members, zip(*columns), strict=True)]
            logits, value = (torch.cat([part[i] for part in parts], 1) for i in (0, 1))
            return PolicyOutput(logits, value, state)
        outputs = [member(obs, first, state) for member in self.members]
        logits = log_max_policy(torch.stack([output.logits for output in outputs]))
        return PolicyOutput(logits, torch.stack([output.value for output in outputs]).mean(0), state)

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Member after member from the same generator: no two are alike."""
        for member in self.members:
            member.initialise(generator)  # type: ignore[operator]
