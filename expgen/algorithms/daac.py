"""DAAC, decoupled advantage actor-critic (Raileanu & Fergus 2021, arXiv 2102.10330).

Policy and value have separate networks. The policy network also predicts advantages, which compare actions and, unlike
values, say little about how far a level has been played. The value network learns in longer phases of its own.

`--augmentation` adds the policy's term of DrAC (Raileanu et al. 2021, arXiv 2006.12862): the policy learns to ignore an
image augmentation. DrAC's term for values is left out: the value network never acts, and A_φ only shapes features.

Differences from the authors' code: values are computed after the rollout in a few large batches (same numbers, faster);
initialisation and skip connections are those of our encoders.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from expgen.algorithms.augment import AUGMENTATIONS, AugmentationName, augment
from expgen.algorithms.policy_gradient import (
    Descent,
    LearningConfig,
    clipped_value_loss,
    detached,
    divergence,
    epochs_of_minibatches,
    policy_terms,
)
from expgen.algorithms.protocol import Algorithm, Metrics
from expgen.networks.actor_critic import Policy, PolicyOutput
from expgen.networks.decoupled import Decoupled, ValueNetwork
from expgen.networks.state import Part
from expgen.rollout.minibatch import Minibatch, Order, minibatches
from expgen.rollout.rollout import Rollout
from expgen.settings import changed_default, later_setting, setting


@dataclass(frozen=True)
class DAACConfig(LearningConfig):
    """The authors' defaults; what they tuned per game is in `runs.presets`."""

    epochs: int = changed_default(LearningConfig, "epochs", 1, "policy epochs per rollout (E_π)")
    minibatch_order: Order = changed_default(LearningConfig, "minibatch_order", "shuffled")
    clip: float = changed_default(LearningConfig, "clip", 0.2, "clip range of the policy ratio and of the value")
    advantage_epsilon: float = changed_default(LearningConfig, "advantage_epsilon", 1e-5)
    value_epochs: int = setting(9, "value network epochs per value phase (E_V)", low=1)
    value_every: int = setting(1, "the value network learns from one in N rollouts (N_π)", low=1)
    advantage_coef: float = setting(0.25, "weight of the advantage loss (α_a)", low=0)
    max_grad_norm: float = setting(0.5, "global norm at which each network's gradient is clipped", low=0)
    augmentation: Literal["none", AugmentationName] = later_setting(
        "none", "DrAC: train the policy to ignore this image augmentation"
    )
    drac_coef: float = later_setting(0.1, "weight of the regulariser of --augmentation (α_r)", low=0)

    @property
    def needs_pictures(self) -> bool:
        """Whether observations must be square colour images."""
        return self.augmentation != "none"


def daac_loss(logits: Tensor, advantage: Tensor, batch: Minibatch, config: DAACConfig) -> tuple[Tensor, Metrics]:
    """L = L_π − c_H H + α_a mean (A_φ(o, a) − Â)², and its named parts; `advantage` is A_φ(o, a)."""
    policy_loss, entropy, kl = policy_terms(logits, batch, config)
    advantage_loss = (advantage - batch.advantage).square().mean()
    loss = policy_loss - config.entropy_coef * entropy + config.advantage_coef * advantage_loss
    return loss, detached(policy_loss=policy_loss, advantage_loss=advantage_loss, entropy=entropy, approximate_kl=kl)


class AdvantageHead(nn.Module):
    """A_φ(o, a) = w·[f; onehot(a)] + b = (w_f·f + b) + w_a[a], from features f and action a.

    The first term is the policy network's value head; this module holds w_a. The policy network therefore has the same
    shape as every other algorithm's.
    """

    def __init__(self, policy: Policy, generator: torch.Generator) -> None:
        """Initialise w_f and w_a together, as one orthogonal linear layer with gain 1."""
        super().__init__()
        features, num_actions = policy.value_head.in_features, policy.policy_head.out_features
        weight = nn.init.orthogonal_(torch.empty(1, features + num_actions), generator=generator)
        w_features, w_actions = weight.to(policy.value_head.weight.device).split([features, num_actions], 1)
        policy.value_head.weight.data.copy_(w_features)
        self.of_action = nn.Parameter(w_actions[0].clone())  # w_a, [A]

    def forward(self, value_output: Tensor, action: Tensor) -> Tensor:
        """Return A_φ(o, a) from the value head's output w_f·f + b and `action`, of the same shape."""
        return value_output + self.of_action[action]


class Actor:
    """Owns the policy network with its advantage head, and their optimiser."""

    def __init__(self, policy: Policy, config: DAACConfig, generator: torch.Generator) -> None:
        """Draw the weights of the advantage head from `generator`."""
        self.policy, self.config = policy, config
        self.advantage_head = AdvantageHead(policy, generator)
        parameters = [*policy.parameters(), *self.advantage_head.parameters()]
        self.descent = Descent(parameters, config.learning_rate, config.adam_epsilon, config.max_grad_norm)

    def augmented(self, batch: Minibatch, generator: torch.Generator) -> Tensor | None:
        """Return f(o), the augmented observations of `batch`; None without an augmentation."""
        name = self.config.augmentation
        return None if name == "none" else augment(batch.obs, AUGMENTATIONS[name], generator)

    def loss(self, output: PolicyOutput, batch: Minibatch, augmented_obs: Tensor | None) -> tuple[Tensor, Metrics]:
        """Return L + α_r mean KL(π(·|o) ‖ π(·|f(o))), π(·|o) without gradient, and its named parts.

        L is `daac_loss`, `output` the policy network's on the observations o of `batch`; without f(o) it is all.
        """
        advantage = self.advantage_head(output.value, batch.action)
        loss, parts = daac_loss(output.logits, advantage, batch, self.config)
        if augmented_obs is None:
            return loss, parts
        augmented = self.policy(augmented_obs, batch.first, batch.state)
        kl = divergence(output.logits.detach(), augmented.logits)
        return loss + self.config.drac_coef * kl, {**parts, **detached(augmentation_kl=kl)}

    def parts(self) -> dict[str, Part]:
        return {"policy": self.policy, "advantage": self.advantage_head, "adam": self.descent}


class Critic:
    """Owns the value network and its optimiser, and decides which rollouts have a value phase."""

    def __init__(self, network: ValueNetwork, config: DAACConfig) -> None:
        self.network, self.config = network, config
        self.descent = Descent(network.parameters(), config.learning_rate, config.adam_epsilon, config.max_grad_norm)
        self.num_rollouts = 0

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """Run a value phase of E_V epochs on the first of every N_π rollouts; yield the metrics of each minibatch."""
        config, is_due = self.config, self.num_rollouts % self.config.value_every == 0
        self.num_rollouts += 1
        unused = rollout.advantage  # the value loss reads value targets only
        for _ in range(config.value_epochs if is_due else 0):
            for batch in minibatches(rollout, unused, config.minibatches, config.minibatch_order, generator):
                yield self.step(batch)

    def step(self, batch: Minibatch) -> Metrics:
        """Take one gradient step on L_V."""
        loss = clipped_value_loss(self.network(batch.obs), batch.value, batch.value_target, self.config.clip)
        norm = self.descent.step(loss)
        return {"value_loss": loss.detach(), "value_grad_norm": norm}

    def state(self) -> dict[str, Tensor]:
        return {"num_rollouts": torch.tensor(self.num_rollouts)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.num_rollouts = int(state["num_rollouts"])

    def parts(self) -> dict[str, Part]:
        return {"critic": self, "critic.network": self.network, "critic.adam": self.descent}


class DAAC(Algorithm):
    """Owns an actor and a critic, which have separate networks."""

    value_network: ValueNetwork

    def __init__(self, networks: Decoupled, config: DAACConfig) -> None:
        self.policy, self.value_network, generator = networks
        self.config = config
        self.actor = Actor(self.policy, config, generator)
        self.critic = Critic(self.value_network, config)

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """Run E_π policy epochs, then a value phase if one is due; yield the metrics of each minibatch."""
        for batch in epochs_of_minibatches(rollout, self.config, generator):
            yield self.step(batch, self.actor.augmented(batch, generator))
        yield from self.critic.update(rollout, generator)

    def step(self, batch: Minibatch, augmented_obs: Tensor | None = None) -> Metrics:
        """Take one gradient step of the policy network; `augmented_obs` are those of `Actor.augmented`."""
        output = self.policy(batch.obs, batch.first, batch.state)
        loss, parts = self.actor.loss(output, batch, augmented_obs)
        norm = self.actor.descent.step(loss)
        return {"loss": loss.detach(), **parts, "grad_norm": norm}

    def parts(self) -> dict[str, Part]:
        return {**self.actor.parts(), **self.critic.parts()}
