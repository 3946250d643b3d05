"""PPO with a clipped objective (Schulman et al. 2017), with or without memory, as ExpGen's members use it.

Advantages are normalised once per rollout. One Adam over all parameters, constant learning rate, no KL stop.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from expgen.algorithms.descent import Descent
from expgen.algorithms.learning import LearningConfig, passes
from expgen.algorithms.losses import approximate_kl, clipped_surrogate, clipped_value_loss, entropy, log_prob_of
from expgen.algorithms.runner import AsWritten, Runner
from expgen.networks.actor_critic import Policy, PolicyOutput
from expgen.networks.state import load_module, under_prefix, with_prefix
from expgen.rollout.minibatch import Minibatch, gather
from expgen.rollout.rollout import Rollout
from expgen.settings import own_default, setting

Metrics = dict[str, Tensor]


@dataclass(frozen=True)
class PPOConfig(LearningConfig):
    """The paper's Table of PPO hyper-parameters; what it leaves open is as in the original code, but for shuffling."""

    epochs: int = own_default(LearningConfig, "epochs", 3)
    clip: float = own_default(LearningConfig, "clip", 0.2, "clip range of the policy ratio and of the value")
    value_coef: float = setting(0.5, "weight of the value loss", low=0)
    max_grad_norm: float = setting(0.5, "global norm at which gradients are clipped", low=0)


def ppo_loss(output: PolicyOutput, batch: Minibatch, config: PPOConfig) -> tuple[Tensor, Metrics]:
    """L = L_π + c_V L_V − c_H H, and its named parts."""
    log_prob = log_prob_of(output.logits, batch.action)
    parts = {
        "policy_loss": clipped_surrogate(log_prob, batch.log_prob, batch.advantage, config.clip),
        "value_loss": clipped_value_loss(output.value, batch.value, batch.value_target, config.clip),
        "entropy": entropy(output.logits),
    }
    loss = parts["policy_loss"] + config.value_coef * parts["value_loss"] - config.entropy_coef * parts["entropy"]
    parts["approximate_kl"] = approximate_kl(log_prob, batch.log_prob)
    return loss, {name: part.detach() for name, part in parts.items()}


class PPO:
    """Owns the policy and its optimiser."""

    def __init__(self, policy: Policy, config: PPOConfig) -> None:
        self.policy, self.config = policy, config
        adam = (config.learning_rate, config.adam_epsilon, config.max_grad_norm)
        self.descent = Descent(policy.parameters(), *adam, fused_on_cpu=True)
        self.run: Runner = AsWritten()  # training.accelerate may put a faster one here

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """E epochs of minibatches; yields the metrics of each, as 0-d tensors on the device."""
        for whole, place in passes(rollout, self.config, generator):
            yield self.run(self.step_at, whole, place)

    def step_at(self, whole: Minibatch, place: Tensor) -> Metrics:
        """One gradient step on the minibatch of `whole` at `place`."""
        return self.step(gather(whole, place, self.config.minibatch_order))

    def step(self, batch: Minibatch) -> Metrics:
        """One gradient step."""
        output = self.policy(batch.obs, batch.first, batch.state)
        loss, parts = ppo_loss(output, batch, self.config)
        norm = self.descent.step(loss)
        return {"loss": loss.detach(), **parts, "grad_norm": norm}

    def state(self) -> dict[str, Tensor]:
        """Weights and optimiser."""
        return {**with_prefix("policy", self.policy.state_dict()), **with_prefix("adam", self.descent.state())}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from `state`."""
        self.run.forget()
        load_module(self.policy, under_prefix("policy", state), "the checkpoint")
        self.descent.load_state(under_prefix("adam", state))
