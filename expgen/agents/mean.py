"""The mean of several policies: `--vote mean`.

Members that make mistakes of their own rarely make them together. At every step the agent samples from the geometric
mean of the M policies' probabilities, that is from the mean of their log-probabilities:

    log p(a|o) = 1/M Σ_j log π_j(a|o) − log Z

A policy's log-probabilities are its logits minus a number that is the same for all actions, so the mean of the logits
has the same softmax. An action that one policy excludes is excluded; `--vote turns --turn 1`, which draws a policy at
every step, samples from the mean of the probabilities instead.

The temperature T (agents.temperature) divides the mean of the logits. For T > 0 this equals a T for each policy before
averaging; T = 0 takes the action with the largest mean, while policies that are greedy one by one would exclude all
actions if they disagree.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from expgen.agents.agent import PolicyAgent
from expgen.agents.temperature import AS_TRAINED, with_temperature
from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import Policy, PolicyOutput


class MeanPolicy(nn.Module):
    """The mean of `policies`, with or without memory; it has the interface of a Policy.

    Its memory `[N, S]` is theirs side by side. Logits are added in float64, so that the mean of equal ones equals them.
    """

    def __init__(self, policies: Sequence[Policy]) -> None:
        super().__init__()
        self.policies = nn.ModuleList(policies)
        self.state_sizes = [policy.state_size for policy in policies]

    @property
    def state_size(self) -> int:
        return sum(self.state_sizes)

    def forward(self, obs: Tensor, first: Tensor, state: Tensor) -> PolicyOutput:
        """`obs` `[T, N, …]`, `first` `[T, N]`, `state` `[N, S]` → mean logits `[T, N, A]`, mean value `[T, N]`."""
        logits = value = torch.zeros((), dtype=torch.float64, device=obs.device)
        states = []
        for policy, own_state in zip(self.policies, state.split(self.state_sizes, dim=1), strict=True):
            output = policy(obs, first, own_state)
            logits, value = logits + output.logits, value + output.value
            states.append(output.state)
        mean_logits, mean_value = (total / len(states) for total in (logits, value))
        return PolicyOutput(mean_logits.float(), mean_value.float(), torch.cat(states, dim=1))


class MeanAgent(PolicyAgent):
    """Samples the actions of the mean of several policies at `temperature`; of equal policies, plays exactly as one."""

    def __init__(
        self,
        policies: Sequence[Policy],
        seed: int = 0,
        spec: EnvSpec | None = None,
        temperature: float = AS_TRAINED,
    ) -> None:
        mean: Policy = MeanPolicy(policies)  # type: ignore[assignment]  # it has the interface of a Policy
        super().__init__(with_temperature(mean, temperature), seed, spec=spec)
        self.num_policies = len(policies)

    def __repr__(self) -> str:
        return f"MeanAgent({self.num_policies} policies, on {self.device})"
