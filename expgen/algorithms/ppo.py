"""PPO, proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347), with or without memory.

ExpGen's members and explorer are trained with it. Details that PPO implementations differ in: advantages are normalised
once per rollout, the value is clipped like the ratio, one Adam updates all parameters, the learning rate is constant,
and there is no early stop on KL. Minibatches are shuffled transitions for `--algo ppo`, where the original ExpGen code
uses whole environments; a policy with memory always learns from whole environments.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from expgen.algorithms.policy_gradient import (
    Descent,
    LearningConfig,
    clipped_value_loss,
    detached,
    epochs_of_minibatches,
    policy_terms,
)
from expgen.algorithms.protocol import Algorithm, Metrics
from expgen.networks.actor_critic import Policy, PolicyOutput
from expgen.networks.state import Part
from expgen.rollout.minibatch import Minibatch
from expgen.rollout.rollout import Rollout
from expgen.settings import changed_default, setting


@dataclass(frozen=True)
class PPOConfig(LearningConfig):
    """The PPO hyper-parameters of the ExpGen paper's table; the original code's where the paper gives none."""

    epochs: int = changed_default(LearningConfig, "epochs", 3)
    clip: float = changed_default(LearningConfig, "clip", 0.2, "clip range of the policy ratio and of the value")
    value_coef: float = setting(0.5, "weight of the value loss", low=0)
    max_grad_norm: float = setting(0.5, "global norm at which gradients are clipped", low=0)


def ppo_loss(output: PolicyOutput, batch: Minibatch, config: PPOConfig) -> tuple[Tensor, Metrics]:
    """Return L = L_π + c_V L_V − c_H H (PPO, Eq. 9, with the sign of a loss), and its named parts.

    `output` is the policy's output on the observations of `batch`.
    """
    policy_loss, entropy, kl = policy_terms(output.logits, batch, config)
    value_loss = clipped_value_loss(output.value, batch.value, batch.value_target, config.clip)
    loss = policy_loss + config.value_coef * value_loss - config.entropy_coef * entropy
    return loss, detached(policy_loss=policy_loss, value_loss=value_loss, entropy=entropy, approximate_kl=kl)


class PPO(Algorithm):
    """Owns the policy and its optimiser."""

    def __init__(self, policy: Policy, config: PPOConfig) -> None:
        self.policy, self.config = policy, config
        self.descent = Descent(
            policy.parameters(), config.learning_rate, config.adam_epsilon, config.max_grad_norm, fused=True
        )

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """Take a gradient step on each minibatch of E epochs; yield its metrics."""
        for batch in epochs_of_minibatches(rollout, self.config, generator):
            yield self.step(batch)

    def step(self, batch: Minibatch) -> Metrics:
        """Take one gradient step on L."""
        output = self.policy(batch.obs, batch.first, batch.state)
        loss, parts = ppo_loss(output, batch, self.config)
        norm = self.descent.step(loss)
        return {"loss": loss.detach(), **parts, "grad_norm": norm}

    def parts(self) -> dict[str, Part]:
        return {"policy": self.policy, "adam": self.descent}
