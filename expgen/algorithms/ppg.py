"""PPG, phasic policy gradient (Cobbe et al. 2020, arXiv 2009.04416): PPO with separate networks and value distillation.

Policy and value have separate networks. After every N_π rollouts, an auxiliary phase trains the policy network's value
head (V_aux) on the value targets of all of them, which shapes the policy's features; a KL term keeps the policy itself
unchanged.

As in the authors' code, values and gradients are not clipped, and the auxiliary phase has its own Adam. Differences:
initialisation is that of our encoders, and values are computed after the rollout in a few large batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from expgen.algorithms.policy_gradient import (
    Descent,
    LearningConfig,
    detached,
    divergence,
    epochs_of_minibatches,
    policy_terms,
)
from expgen.algorithms.ppg_history import History
from expgen.algorithms.protocol import Algorithm, Metrics
from expgen.envs.vec_env import VecEnv
from expgen.networks.actor_critic import PolicyOutput, forward_memoryless
from expgen.networks.decoupled import Decoupled, ValueNetwork
from expgen.networks.state import Part
from expgen.rollout.minibatch import Minibatch
from expgen.rollout.rollout import Rollout
from expgen.settings import changed_default, setting


@dataclass(frozen=True)
class PPGConfig(LearningConfig):
    """The authors' settings, for one of their workers."""

    epochs: int = changed_default(LearningConfig, "epochs", 1, "epochs per rollout, for both networks (E_π, E_V)")
    adam_epsilon: float = changed_default(LearningConfig, "adam_epsilon", 1e-8)
    value_coef: float = setting(0.5, "weight of the value loss in policy phases", low=0)
    policy_phases: int = setting(32, "rollouts between two auxiliary phases (N_π)", low=1, high=10**4)
    aux_epochs: int = setting(6, "epochs of an auxiliary phase (E_aux); 0: no auxiliary phases", low=0)
    aux_columns: int = setting(4, "sequences of one environment per auxiliary minibatch", low=1, high=10**9)
    aux_learning_rate: float = setting(5e-4, "learning rate of the auxiliary phase's Adam", low=0)
    clone_coef: float = setting(1.0, "weight of KL(π_old ‖ π) in auxiliary phases (β_clone)", low=0)
    aux_value_coef: float = setting(1.0, "weight of the value network's loss in auxiliary phases", low=0)


def policy_phase_loss(
    output: PolicyOutput, value: Tensor, batch: Minibatch, config: PPGConfig
) -> tuple[Tensor, Metrics]:
    """L = L_π − c_H H + c_V mean (V − R)², and its named parts; `value` is the value network's V."""
    policy_loss, entropy, kl = policy_terms(output.logits, batch, config)
    value_loss = (value - batch.value_target).square().mean()
    loss = policy_loss - config.entropy_coef * entropy + config.value_coef * value_loss
    return loss, detached(policy_loss=policy_loss, value_loss=value_loss, entropy=entropy, approximate_kl=kl)


def auxiliary_loss(
    output: PolicyOutput, value: Tensor, old_logits: Tensor, target: Tensor, config: PPGConfig
) -> tuple[Tensor, Metrics]:
    """L_joint = ½ mean (V_aux − R)² + β_clone KL(π_old ‖ π) + c ½ mean (V − R)², and its named parts.

    V_aux is the policy network's value head (`output.value`), V the value network's `value`, R the `target`.
    """
    head_loss = 0.5 * (output.value - target).square().mean()
    clone_kl = divergence(old_logits, output.logits)
    value_loss = 0.5 * (value - target).square().mean()
    loss = head_loss + config.clone_coef * clone_kl + config.aux_value_coef * value_loss
    return loss, detached(aux_head_loss=head_loss, clone_kl=clone_kl, aux_value_loss=value_loss)


class PPG(Algorithm):
    """Owns both networks, an optimiser for each kind of phase, and the rollouts since the last auxiliary phase."""

    value_network: ValueNetwork

    def __init__(self, networks: Decoupled, config: PPGConfig) -> None:
        self.policy, self.value_network, _ = networks
        self.config = config
        parameters = [*self.policy.parameters(), *self.value_network.parameters()]
        self.descent = Descent(parameters, config.learning_rate, config.adam_epsilon)
        self.aux_descent = Descent(parameters, config.aux_learning_rate, config.adam_epsilon)
        self.history = History(config.policy_phases, parameters[0].device)

    def before_rollout(self, env: VecEnv) -> None:
        """Save the environment's state at the history's start, or replay a resumed history's observations."""
        self.history.open(env)

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """Run a policy phase and, after every N_π of them, an auxiliary phase; yield the metrics of each minibatch."""
        for batch in epochs_of_minibatches(rollout, self.config, generator):
            yield self.step(batch)
        if self.config.aux_epochs:
            self.history.add(rollout)
            if self.history.is_full:
                yield from self.auxiliary_phase(generator)

    def step(self, batch: Minibatch) -> Metrics:
        """Take one gradient step of a policy phase, on both networks."""
        output = self.policy(batch.obs, batch.first, batch.state)
        loss, parts = policy_phase_loss(output, self.value_network(batch.obs), batch, self.config)
        norm = self.descent.step(loss)
        return {"loss": loss.detach(), **parts, "grad_norm": norm}

    def auxiliary_phase(self, generator: torch.Generator) -> Iterator[Metrics]:
        """Run E_aux epochs over the whole history, then clear it."""
        history, device = self.history, self.history.obs.device
        columns = torch.arange(history.num_columns, device=device)
        logits = []
        for column in columns.split(self.config.aux_columns):
            logits.append(self.logits(history.columns(history.obs, column)))
            yield {}
        old_logits = torch.cat(logits)  # [K · N, T, A] of π_old
        for _ in range(self.config.aux_epochs):
            permutation = torch.randperm(len(columns), generator=generator, device=device)
            for column in permutation.split(self.config.aux_columns):
                obs = history.columns(history.obs, column)
                target = history.columns(history.value_target, column)
                yield self.auxiliary_step(obs, old_logits[column], target)
        history.clear()

    def auxiliary_step(self, obs: Tensor, old_logits: Tensor, target: Tensor) -> Metrics:
        """Take one gradient step of an auxiliary phase, on sequences `[P, T, …]` of the history, and π_old's logits."""
        output = forward_memoryless(self.policy, obs)
        loss, parts = auxiliary_loss(output, self.value_network(obs), old_logits, target, self.config)
        norm = self.aux_descent.step(loss)
        return {"aux_loss": loss.detach(), **parts, "aux_grad_norm": norm}

    @torch.no_grad()
    def logits(self, obs: Tensor) -> Tensor:
        """Return the policy's logits for sequences of the history `[P, T, …]`."""
        return forward_memoryless(self.policy, obs).logits  # [P, T, A]

    def parts(self) -> dict[str, Part]:
        return {
            "policy": self.policy,
            "value": self.value_network,
            "adam": self.descent,
            "aux_adam": self.aux_descent,
            "history": self.history,
        }
