"""IDAAC, invariant DAAC (Raileanu & Fergus 2021): DAAC whose features must not say how far a level has been played.

A classifier D learns to tell from the features of two frames of one level which comes earlier in its episode; the
policy network learns to leave it undecided. Pairs are of one level, not of one trajectory, as in the authors' code.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from expgen.algorithms.daac import DAAC, DAACConfig, daac_loss
from expgen.algorithms.idaac_order import Pairs, draw_pairs
from expgen.algorithms.policy_gradient import Descent
from expgen.algorithms.protocol import Algorithm, Metrics
from expgen.networks.decoupled import Decoupled
from expgen.networks.small import orthogonal
from expgen.networks.state import Part
from expgen.rollout.gae import normalized
from expgen.rollout.minibatch import Minibatch, transition_order
from expgen.rollout.rollout import Rollout
from expgen.settings import setting


@dataclass(frozen=True)
class IDAACConfig(DAACConfig):
    """DAAC's settings and those of the order classifier."""

    order_coef: float = setting(0.001, "weight of the order loss (α_i)", low=0)
    order_hidden: int = setting(0, "width of the order classifier's hidden layer; 0: it is linear", low=0, high=2**14)


def classifier_loss(verdict: Tensor, is_earlier: Tensor) -> Tensor:
    """BCE(p, y) = −mean (y log p + (1 − y) log(1 − p)), p the first of softmax(`verdict` `[B, 2]`), y `[B]`."""
    log_p, log_not_p = torch.log_softmax(verdict, -1).unbind(-1)
    return -(is_earlier * log_p + (1 - is_earlier) * log_not_p).mean()


def order_loss(verdict: Tensor) -> Tensor:
    """L_order = BCE(p, ½): least, log 2, where the classifier is undecided."""
    return classifier_loss(verdict, torch.full_like(verdict[..., 0], 0.5))


class OrderClassifier(nn.Module):
    """D: features of frames i and j `[B, F]` each → `[B, 2]`, the first the larger the surer that j comes earlier."""

    def __init__(self, features: int, hidden: int, generator: torch.Generator) -> None:
        """Orthogonal with gain 1, √2 before a ReLU; biases 0."""
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
    """Owns a DAAC, whose steps it takes with one more loss, and the order classifier."""

    def __init__(self, networks: Decoupled, config: IDAACConfig) -> None:
        self.config, self.daac = config, DAAC(networks, config)
        self.policy, self.value_network, generator = networks
        head = self.policy.policy_head
        self.classifier = OrderClassifier(head.in_features, config.order_hidden, generator).to(head.weight.device)
        adam = (config.learning_rate, config.adam_epsilon, config.max_grad_norm)
        self.classifier_descent = Descent(self.classifier.parameters(), *adam)
        self.elapsed = torch.zeros(1, dtype=torch.int64, device=head.weight.device)  # [N] after the first rollout

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """E_π epochs of classifier and policy, then a value phase if one is due; yields each minibatch's metrics."""
        config = self.config
        advantage = normalized(rollout.advantage, config.advantage_epsilon)
        pairs = draw_pairs(rollout.level, rollout.first, self.elapsed, generator)
        self.elapsed = pairs.elapsed
        for _ in range(config.epochs):
            for row in transition_order(rollout, config.minibatches, config.minibatch_order, generator):
                yield self.step(Minibatch(rollout, advantage, row, "shuffled"), pairs)
        yield from self.daac.critic.update(rollout, generator)

    def step(self, batch: Minibatch, pairs: Pairs) -> Metrics:
        """One gradient step of the classifier, then one of the policy network, on frames i and their partners j."""
        frames = batch.rollout.obs.flatten(0, 1)  # [(T+1) · N, …]
        partner = frames.index_select(0, pairs.partner.index_select(0, batch.index)).unsqueeze(0)  # [1, B, …]
        is_earlier = pairs.is_earlier.index_select(0, batch.index)  # [B]
        both = torch.cat([batch.obs, partner], 1)  # [1, 2B, …]
        features, _ = self.policy.features(both, batch.first.repeat(1, 2), batch.state)
        of_batch, of_partner = features.chunk(2, 1)  # [1, B, F] each

        verdict = self.classifier(of_batch[0].detach(), of_partner[0].detach())
        loss_of_classifier = classifier_loss(verdict, is_earlier)
        norm_of_classifier = self.classifier_descent.step(loss_of_classifier)

        output = self.policy.heads(of_batch, batch.state)
        advantage = self.daac.advantage_head(output.value, batch.action)
        loss, parts = daac_loss(output.logits, advantage, batch, self.config)
        undecided = order_loss(self.classifier(of_batch[0], of_partner[0]))
        loss = loss + self.config.order_coef * undecided
        norm = self.daac.descent.step(loss)
        return {
            "loss": loss.detach(),
            **parts,
            "grad_norm": norm,
            "order_loss": undecided.detach(),
            "classifier_loss": loss_of_classifier.detach(),
            "classifier_grad_norm": norm_of_classifier,
            "order_accuracy": ((verdict[:, 0] > verdict[:, 1]).float() == is_earlier).float().mean(),
        }

    def parts(self) -> dict[str, Part]:
        return {**self.daac.parts(), "classifier": self.classifier, "classifier_adam": self.classifier_descent}

    def state(self) -> dict[str, Tensor]:
        """Every tensor of the parts, and how long each episode under way has lasted."""
        return {**super().state(), "elapsed": self.elapsed}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        super().load_state(state)
        self.elapsed = state["elapsed"].to(self.elapsed.device)
