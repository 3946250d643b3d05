"""Sampling temperature of trained policies (`--temperature`, `--explorer-temperature`).

A policy trained with an entropy bonus samples more widely than is best for its score. A temperature T < 1 makes it
more deterministic at test time: π_T(a|o) ∝ π(a|o)^(1/T), that is logits divided by T. T = 1 plays the policy as it was
trained, T = 0 always takes the most likely action.

Explorers beside members may have a temperature of their own: members that score best at a low one can be combined with
explorers that play as they were trained.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from expgen.errors import InputError
from expgen.networks.actor_critic import Policy, PolicyOutput
from expgen.settings import to_python_number
from expgen.text import short_repr

AS_TRAINED = 1.0
LOWEST, HIGHEST = 0.001, 100  # beside 0; with far lower ones logits overflow


def checked_temperature(value: Any, field: str = "--temperature") -> float:
    """Return `value` as a float; raise InputError unless it is a temperature."""
    value = to_python_number(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (is_number and (value == 0 or LOWEST <= value <= HIGHEST)):
        raise InputError(f"{field} is {short_repr(value)}; accepted: 0, or {LOWEST} to {HIGHEST}")
    return float(abs(value))


def temperature_text(value: float) -> str:
    """Return the shortest text that reads as `value`: 0.25, 0 (also for −0.0), 1."""
    return repr(abs(float(value))).removesuffix(".0")


def with_temperature(policy: Policy, temperature: float) -> Policy:
    """Return `policy` with its logits divided by `temperature`, or `policy` itself for a temperature of 1."""
    tempered = policy if temperature == AS_TRAINED else TemperedPolicy(policy, temperature)
    return tempered  # type: ignore[return-value]  # it has the interface of a Policy


class TemperedPolicy(nn.Module):
    """A policy whose logits are divided by `temperature`; with 0 all but the largest are −∞."""

    def __init__(self, policy: Policy, temperature: float) -> None:
        super().__init__()
        self.policy, self.temperature = policy, temperature

    @property
    def state_size(self) -> int:
        return self.policy.state_size

    def forward(self, obs: Tensor, first: Tensor, state: Tensor) -> PolicyOutput:
        """Return the policy's output with changed logits."""
        output = self.policy(obs, first, state)
        return output._replace(logits=divide(output.logits, self.temperature))


def divide(logits: Tensor, temperature: float) -> Tensor:
    """Return the logits `[…, A]` of π_T."""
    if temperature > 0:
        return logits / temperature
    is_largest = logits == logits.amax(-1, keepdim=True)
    return torch.where(is_largest, 0.0, -math.inf)
