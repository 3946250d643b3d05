"""UCB-DrAC (Raileanu et al. 2021, arXiv 2006.12862): PPO, regularised to be invariant to image augmentation.

A UCB bandit picks one of eight augmentations for each update, by the returns that followed its use.

Differences from the authors' code: the colours of cutout-color stay in range, and the actions for G_π are sampled from
the logits of the PPO loss instead of by a second forward pass with the same weights.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from expgen.algorithms.augment import AUGMENTATIONS, AugmentationName, augment
from expgen.algorithms.policy_gradient import Descent, detached, epochs_of_minibatches, log_prob_of
from expgen.algorithms.ppo import PPOConfig, ppo_loss
from expgen.algorithms.protocol import Algorithm, Metrics
from expgen.networks.actor_critic import Policy, PolicyOutput
from expgen.networks.state import Part
from expgen.rollout.minibatch import Minibatch, Order
from expgen.rollout.rollout import Rollout
from expgen.settings import changed_default, setting

NAMES = tuple(AUGMENTATIONS)


@dataclass(frozen=True)
class UcbDracConfig(PPOConfig):
    """PPO's settings with the authors' values, and those of the regularisers and the bandit."""

    minibatch_order: Order = changed_default(PPOConfig, "minibatch_order", "shuffled")
    advantage_epsilon: float = changed_default(PPOConfig, "advantage_epsilon", 1e-5)
    drac_coef: float = setting(0.1, "α_r: weight of the two regularisers", low=0)
    augmentation: Literal["ucb", AugmentationName] = setting(
        "ucb", "ucb: the bandit picks one per update; or always this augmentation"
    )
    ucb_exploration: float = setting(0.1, "c: weight of the bandit's exploration bonus", low=0)
    ucb_window: int = setting(10, "latest returns of each augmentation that the bandit averages", low=1, high=10**6)
    ucb_try_each: bool = setting(False, "use every augmentation once first; otherwise the bandit may not compare them")


def drac_loss(plain: PolicyOutput, augmented: PolicyOutput, noise: Tensor) -> tuple[Tensor, Metrics]:
    """G_π + G_V, and its named parts; π(·|o) and V(o), of the original observation o, have no gradient.

        G_π = −mean log π(â | f(o)),  â ~ π(·|o)
        G_V = ½ mean (V(o) − V(f(o)))²

    `plain` is the output for o, `augmented` for f(o); `noise` is Gumbel noise of the logits' shape, which samples â.
    """
    action = (plain.logits.detach() + noise).argmax(-1)
    policy = -log_prob_of(augmented.logits, action).mean()
    value = 0.5 * (plain.value.detach() - augmented.value).square().mean()
    return policy + value, detached(drac_policy=policy, drac_value=value)


class UcbBandit:
    """Pulls the arm f with the largest UCB(f) = Q(f) + c √(ln n / n(f)).

    Q(f) is the mean of the last `window` returns after pulling f. n counts all pulls and n(f) those of f; both start at
    1, and Q at 0, so the first arm is pulled first. Once the returns of an arm exceed c √(ln n), no new arm is pulled,
    unless `tries_each` is set: then every arm is pulled once first.
    """

    def __init__(self, num_arms: int, exploration: float, window: int, tries_each: bool = False) -> None:
        self.exploration, self.tries_each = exploration, tries_each
        self.pulls = torch.ones(num_arms, dtype=torch.float64)  # n(f)
        self.total = torch.ones(1, dtype=torch.float64)  # n
        self.returns = torch.zeros(num_arms, window, dtype=torch.float64)  # newest last; 0 if missing
        self.arm = torch.full((1,), -1)  # pulled last; −1: none yet

    def reward(self, value: float) -> None:
        """Record the return `value` that followed the last pull."""
        arm = int(self.arm)
        self.total += 1
        self.pulls[arm] += 1
        self.returns[arm] = torch.cat([self.returns[arm, 1:], self.returns.new_tensor([value])])

    def pull(self) -> int:
        """Return the arm with the highest bound, the first of equals."""
        self.arm[:] = int(self.bounds().argmax())
        return int(self.arm)

    def bounds(self) -> Tensor:
        quality = self.returns.sum(1) / (self.pulls - 1).clamp(1, self.returns.shape[1])
        bound = quality + self.exploration * (self.total.log() / self.pulls).sqrt()
        return torch.where(self.pulls == 1, torch.inf, bound) if self.tries_each else bound

    def state(self) -> dict[str, Tensor]:
        return {"pulls": self.pulls, "total": self.total, "returns": self.returns, "arm": self.arm}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned; `state` is empty if only weights are shipped, and the bandit is unchanged."""
        if state:
            for name, tensor in self.state().items():
                tensor.copy_(state[name])


class UcbDrac(Algorithm):
    """Owns the policy, its optimiser and the bandit."""

    def __init__(self, policy: Policy, config: UcbDracConfig) -> None:
        self.policy, self.config = policy, config
        self.descent = Descent(policy.parameters(), config.learning_rate, config.adam_epsilon, config.max_grad_norm)
        self.bandit = UcbBandit(len(NAMES), config.ucb_exploration, config.ucb_window, config.ucb_try_each)

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """Take a gradient step on each minibatch of E epochs, with one augmentation for all; yield its metrics."""
        index = self.choose_augmentation(rollout)
        metric = torch.tensor(float(index), device=rollout.device)
        for batch in epochs_of_minibatches(rollout, self.config, generator):
            augmented_obs = augment(batch.obs, AUGMENTATIONS[NAMES[index]], generator)
            noise = batch.log_prob.new_empty(*batch.log_prob.shape, self.policy.policy_head.out_features)  # [T, B, A]
            noise.exponential_(generator=generator).log_().neg_()  # Gumbel noise
            yield {**self.step(batch, augmented_obs, noise), "augmentation": metric}

    def choose_augmentation(self, rollout: Rollout) -> int:
        """Return the index of this update's augmentation, after rewarding the bandit for its last choice.

        The reward is the rollout's mean return over T + 1 rows, of which the last is zero, as in the authors' code.
        """
        if self.config.augmentation != "ucb":
            return NAMES.index(self.config.augmentation)
        if self.bandit.arm >= 0:
            mean_return = float(rollout.value_target.mean())  # the CPU waits for the GPU here
            self.bandit.reward(rollout.num_steps / (rollout.num_steps + 1) * mean_return)
        return self.bandit.pull()

    def step(self, batch: Minibatch, augmented_obs: Tensor, noise: Tensor) -> Metrics:
        """Take one gradient step on L = L_PPO + α_r (G_π + G_V)."""
        plain = self.policy(batch.obs, batch.first, batch.state)
        augmented = self.policy(augmented_obs, batch.first, batch.state)
        ppo, parts = ppo_loss(plain, batch, self.config)
        drac, drac_parts = drac_loss(plain, augmented, noise)
        loss = ppo + self.config.drac_coef * drac
        norm = self.descent.step(loss)
        return {"loss": loss.detach(), **parts, **drac_parts, "grad_norm": norm}

    def parts(self) -> dict[str, Part]:
        return {"policy": self.policy, "adam": self.descent, "bandit": self.bandit}
