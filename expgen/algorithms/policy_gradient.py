"""Parts that the policy-gradient algorithms share: settings, minibatch loop, loss terms and optimiser step."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Adam

from expgen.algorithms.protocol import Metrics
from expgen.networks.state import load_optimizer, optimizer_state
from expgen.rollout.gae import normalized
from expgen.rollout.minibatch import Minibatch, Order, minibatches
from expgen.rollout.rollout import Rollout
from expgen.settings import setting


@dataclass(frozen=True)
class LearningConfig:
    """Settings of GAE, minibatches, Adam and the clipped policy loss; each algorithm's config extends it."""

    gamma: float = setting(0.999, "discount γ", low=0, high=1)
    gae_lambda: float = setting(0.95, "λ of generalised advantage estimation", low=0, high=1)
    epochs: int = setting(1, "passes over each rollout", low=1)
    minibatches: int = setting(8, "minibatches (optimiser steps) per epoch", low=1)
    minibatch_order: Order = setting("columns", "minibatches of whole environments, or of shuffled transitions")
    learning_rate: float = setting(5e-4, "Adam's learning rate", low=0)
    adam_epsilon: float = setting(1e-5, "Adam's ε", low=0)
    clip: float = setting(0.2, "clip range of the policy ratio", low=0)
    entropy_coef: float = setting(0.01, "weight of the entropy bonus")
    advantage_epsilon: float = setting(1e-8, "added to the std that advantages are divided by", low=0)


def epochs_of_minibatches(rollout: Rollout, config: LearningConfig, generator: torch.Generator) -> Iterator[Minibatch]:
    """Yield the minibatches of E epochs over the rollout, with advantages normalised over the whole rollout."""
    advantage = normalized(rollout.advantage, config.advantage_epsilon)
    for _ in range(config.epochs):
        yield from minibatches(rollout, advantage, config.minibatches, config.minibatch_order, generator)


def log_prob_of(logits: Tensor, action: Tensor) -> Tensor:
    """Return log π(a|o) `[…]` from `logits` `[…, A]` and `action` `[…]`."""
    return torch.log_softmax(logits, -1).gather(-1, action.unsqueeze(-1)).squeeze(-1)


def entropy(logits: Tensor) -> Tensor:
    """Return mean H[π] = −mean Σ_a π(a) log π(a), from `logits` `[…, A]`."""
    log_prob = torch.log_softmax(logits, -1)
    return -(log_prob.exp() * log_prob).sum(-1).mean()


def clipped_surrogate(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """Return L_π = −mean min(ρ Â, clip(ρ, 1−c, 1+c) Â), ρ = π/π_old (PPO, Eq. 7).

    `log_prob` is log π, `old_log_prob` log π_old and `advantage` Â, of the same shape; `clip` is c.
    """
    ratio = (log_prob - old_log_prob).exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()


def clipped_value_loss(value: Tensor, old_value: Tensor, target: Tensor, clip: float) -> Tensor:
    """Return L_V = ½ mean max((V − R)², (V_old + clip(V − V_old, ±c) − R)²).

    `value` is V, `old_value` V_old and `target` R, of the same shape; `clip` is c.
    """
    clipped = old_value + (value - old_value).clamp(-clip, clip)
    return 0.5 * torch.maximum((value - target).square(), (clipped - target).square()).mean()


def approximate_kl(log_prob: Tensor, old_log_prob: Tensor) -> Tensor:
    """Return mean (ρ − 1 − log ρ): an unbiased, non-negative estimate of KL(π_old ‖ π) from samples of π_old."""
    log_ratio = log_prob - old_log_prob
    return (log_ratio.exp() - 1 - log_ratio).mean()


def divergence(old_logits: Tensor, logits: Tensor) -> Tensor:
    """mean KL(π_old ‖ π) = mean Σ_a π_old(a) (log π_old(a) − log π(a)), both from logits `[…, A]`."""
    old = torch.log_softmax(old_logits, -1)
    return (old.exp() * (old - torch.log_softmax(logits, -1))).sum(-1).mean()


def policy_terms(logits: Tensor, batch: Minibatch, config: LearningConfig) -> tuple[Tensor, Tensor, Tensor]:
    """Return L_π, mean H[π] and the approximate KL(π_old ‖ π), where π has `logits` `[T, B, A]` on `batch`."""
    log_prob = log_prob_of(logits, batch.action)
    policy_loss = clipped_surrogate(log_prob, batch.log_prob, batch.advantage, config.clip)
    return policy_loss, entropy(logits), approximate_kl(log_prob, batch.log_prob)


def detached(**parts: Tensor) -> Metrics:
    """Return the named parts of a loss as metrics."""
    return {name: part.detach() for name, part in parts.items()}


class Descent:
    """Adam with optional gradient clipping; a step changes `parameters` only."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        learning_rate: float,
        epsilon: float,
        max_grad_norm: float | None = None,
        fused: bool = False,
    ) -> None:
        """`fused` must be False if parameters are views into a larger tensor: it overwrites the gaps between them."""
        self.parameters = list(parameters)
        self.max_grad_norm = max_grad_norm
        self.adam = Adam(self.parameters, learning_rate, eps=epsilon, fused=fused)

    def step(self, loss: Tensor) -> Tensor:
        """Take one optimiser step on `loss`; return the gradient's global norm before clipping."""
        self.adam.zero_grad(set_to_none=True)
        loss.backward(inputs=self.parameters)
        if self.max_grad_norm is None:
            norm = nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])
        else:
            norm = nn.utils.clip_grad_norm_(self.parameters, self.max_grad_norm)
        self.adam.step()
        return norm

    def state(self) -> dict[str, Tensor]:
        return optimizer_state(self.adam)

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        load_optimizer(self.adam, state)
