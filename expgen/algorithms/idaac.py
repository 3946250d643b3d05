"""IDAAC, invariant DAAC (Raileanu & Fergus 2021, arXiv 2102.10330): DAAC with time-invariant features.

A classifier D learns to predict, from the features of two frames of the same level, which one is earlier in its
episode. The policy network is trained adversarially, so that D stays undecided. As in the authors' code, both frames
come from one level; in their text they come from one trajectory. `idaac_order.py` draws the pairs.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from expgen.algorithms.daac import Actor, Critic, DAACConfig
from expgen.algorithms.idaac_order import Pairs, draw_pairs
from expgen.algorithms.policy_gradient import Descent
from expgen.algorithms.protocol import Algorithm, Metrics
from expgen.networks.decoupled import Decoupled, ValueNetwork
from expgen.networks.small import orthogonal
from expgen.networks.state import Part
from expgen.rollout.gae import normalized
from expgen.rollout.minibatch import Minibatch, minibatch_rows
from expgen.rollout.rollout import Rollout
from expgen.settings import setting


@dataclass(frozen=True)
class IDAACConfig(DAACConfig):
    """DAAC's settings, and those of the order classifier."""

    order_coef: float = setting(0.001, "weight of the order loss (α_i)", low=0)
    order_hidden: int = setting(0, "width of the order classifier's hidden layer; 0: none", low=0, high=2**14)


def classifier_loss(logits: Tensor, is_earlier: Tensor) -> Tensor:
    """L_D = BCE(p, y) = −mean (y log p + (1 − y) log(1 − p)), p = softmax(logits `[B, 2]`)₁, y = is_earlier `[B]`."""
    log_p, log_not_p = torch.log_softmax(logits, -1).unbind(-1)
    return -(is_earlier * log_p + (1 - is_earlier) * log_not_p).mean()


def order_loss(logits: Tensor) -> Tensor:
    """L_order = BCE(p, ½): its minimum, log 2, is at p = ½, where the classifier is undecided."""
    return classifier_loss(logits, torch.full_like(logits[..., 0], 0.5))


class OrderClassifier(nn.Module):
    """D: features of frames i and j `[B, F]` → logits `[B, 2]` of "j is earlier than i" and its opposite."""

    def __init__(self, features: int, hidden: int, generator: torch.Generator) -> None:
        """Initialise orthogonally, with gain √2 before a ReLU and 1 at the output; biases are 0."""
        super().__init__()
        widths = [2 * features, hidden, 2] if hidden else [2 * features, 2]
        self.layers = nn.ModuleList(nn.Linear(*pair, device="meta") for pair in pairwise(widths))
        self.to_empty(device="cpu")
        orthogonal(self.layers[:-1], math.sqrt(2), generator)
        orthogonal(self.layers[-1:], 1.0, generator)

    def forward(self, features: Tensor, partner: Tensor) -> Tensor:
        x = torch.cat([features, partner], -1)
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


class IDAAC(Algorithm):
    """Owns DAAC's actor and critic, and the order classifier with its optimiser."""

    value_network: ValueNetwork

    def __init__(self, networks: Decoupled, config: IDAACConfig) -> None:
        self.policy, self.value_network, generator = networks
        self.config = config
        self.actor = Actor(self.policy, config, generator)
        self.critic = Critic(self.value_network, config)
        head = self.policy.policy_head
        self.classifier = OrderClassifier(head.in_features, config.order_hidden, generator).to(head.weight.device)
        self.classifier_descent = Descent(
            self.classifier.parameters(), config.learning_rate, config.adam_epsilon, config.max_grad_norm
        )
        self.elapsed = torch.zeros(1, dtype=torch.int64, device=head.weight.device)  # [N] episode ages; [0] at first

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """Run E_π epochs of classifier and policy, then a value phase if due; yield the metrics of each minibatch."""
        config, T, N = self.config, rollout.num_steps, rollout.num_envs
        advantage = normalized(rollout.advantage, config.advantage_epsilon)
        pairs = draw_pairs(rollout.level, rollout.first, self.elapsed, generator)
        self.elapsed = pairs.elapsed
        for _ in range(config.epochs):
            for row in minibatch_rows(T, N, config.minibatches, config.minibatch_order, generator):
                batch = Minibatch(rollout, advantage, row, "shuffled")
                yield self.step(batch, pairs, self.actor.augmented(batch, generator))
        yield from self.critic.update(rollout, generator)

    def step(self, batch: Minibatch, pairs: Pairs, augmented_obs: Tensor | None = None) -> Metrics:
        """Take a gradient step of the classifier, then one of the policy network, on frames i and their partners j.

        `augmented_obs` are those of `Actor.augmented`, for frames i only.
        """
        frames = batch.rollout.obs.flatten(0, 1)  # [(T+1) · N, …]
        partner_obs = frames.index_select(0, pairs.partner.index_select(0, batch.index)).unsqueeze(0)  # [1, B, …]
        is_earlier = pairs.is_earlier.index_select(0, batch.index)  # [B]
        obs = torch.cat([batch.obs, partner_obs], 1)  # [1, 2B, …]
        both_features, _ = self.policy.features(obs, batch.first.repeat(1, 2), batch.state)
        features, partner = both_features.chunk(2, 1)  # [1, B, F] each

        logits = self.classifier(features[0].detach(), partner[0].detach())  # [B, 2]
        loss_d = classifier_loss(logits, is_earlier)
        norm_d = self.classifier_descent.step(loss_d)

        output = self.policy.heads(features, batch.state)
        loss, parts = self.actor.loss(output, batch, augmented_obs)
        invariance = order_loss(self.classifier(features[0], partner[0]))
        loss = loss + self.config.order_coef * invariance
        norm = self.actor.descent.step(loss)
        return {
            "loss": loss.detach(),
            **parts,
            "grad_norm": norm,
            "order_loss": invariance.detach(),
            "classifier_loss": loss_d.detach(),
            "classifier_grad_norm": norm_d,
            "order_accuracy": ((logits[:, 0] > logits[:, 1]).float() == is_earlier).float().mean(),
        }

    def parts(self) -> dict[str, Part]:
        return {
            **self.actor.parts(),
            **self.critic.parts(),
            "classifier": self.classifier,
            "classifier_adam": self.classifier_descent,
        }

    def state(self) -> dict[str, Tensor]:
        return {**super().state(), "elapsed": self.elapsed}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        super().load_state(state)
        if "elapsed" in state:  # a packed run has none; its games start anew
            self.elapsed = state["elapsed"].to(self.elapsed.device)
