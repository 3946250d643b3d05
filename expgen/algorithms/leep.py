"""LEEP (Ghosh et al. 2021): an ensemble over subsets of the levels, each member held to the policy all make together.

One learner owns M members; the environments are split among them and each part plays its member's levels. Members are
updated one after the other by PPO with a penalty for leaving π̄, the normalised maximum of all members; at test time π̄
plays. Where we differ from the implementation released with ExpGen: level subsets lie inside the training levels
(theirs reach into the test levels), π̄ is sampled as probabilities (theirs as logits, which is nearly uniform play), and
the penalty is the LEEP paper's (`--kl-direction from-joint` for theirs).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from expgen.algorithms.policy_gradient import Descent
from expgen.algorithms.ppo import PPOConfig, ppo_loss
from expgen.algorithms.protocol import Algorithm, Metrics
from expgen.envs.levels import LevelSet, LevelStream
from expgen.errors import InputError
from expgen.networks.actor_critic import Policy, PolicyOutput, policies_in, without_memory
from expgen.networks.state import Part
from expgen.random import counter_hash, draw_below
from expgen.rollout.gae import normalized
from expgen.rollout.minibatch import Minibatch, Order, transition_order
from expgen.rollout.rollout import Rollout
from expgen.settings import changed_default, setting


@dataclass(frozen=True)
class LeepConfig(PPOConfig):
    """PPO's settings, and those of the ensemble."""

    minibatch_order: Order = changed_default(PPOConfig, "minibatch_order", "shuffled")
    subsets: int = setting(4, "M: members, each with its own levels and its share of --envs", low=1)
    subset_levels: Literal["bootstrap", "disjoint", "all"] = setting(
        "bootstrap", "a member's levels: as many draws with replacement as there are, an equal part, or all"
    )
    kl_coef: float = setting(1.0, "α: weight of the penalty for leaving the joint policy", low=0)
    kl_direction: Literal["to-joint", "from-joint"] = setting(
        "to-joint", "KL(π_i ‖ π̄) as in the LEEP paper, or KL(π̄ ‖ π_i) as in ExpGen's release"
    )


def leep_loss(output: PolicyOutput, batch: Minibatch, others: Tensor, config: LeepConfig) -> tuple[Tensor, Metrics]:
    """L_i = L_PPO + α mean KL(π_i ‖ π̄),  π̄ = max_j π_j / Σ_a max_j π_j  without gradient, and its named parts.

    `others` `[T, B, A]` is log max_{j ≠ i} π_j, fixed while member i learns.
    """
    ppo, parts = ppo_loss(output, batch, config)
    own = torch.log_softmax(output.logits, -1)
    joint = torch.log_softmax(torch.maximum(own.detach(), others), -1)  # log π̄
    if config.kl_direction == "to-joint":
        kl = (own.exp() * (own - joint)).sum(-1).mean()
    else:
        kl = (joint.exp() * (joint - own)).sum(-1).mean()
    return ppo + config.kl_coef * kl, {**parts, "joint_kl": kl.detach()}


@torch.no_grad()
def log_max_prob(members: Sequence[Policy], obs: Tensor, num_actions: int) -> Tensor:
    """log max_j π_j(a|o) of `members` for `obs` `[B, …]`, `[B, A]`; −∞ where there are none."""
    best = torch.full((len(obs), num_actions), -torch.inf, device=obs.device)
    for member in members:
        best = torch.maximum(best, torch.log_softmax(without_memory(member, obs.unsqueeze(0)).logits[0], -1))
    return best


class Leep(Algorithm):
    """Owns the joint policy and one optimiser for each member."""

    def __init__(self, policy: Policy, config: LeepConfig) -> None:
        self.policy, self.config = policy, config
        self.members = policies_in(policy)
        adam = (config.learning_rate, config.adam_epsilon, config.max_grad_norm)
        self.descents = [Descent(member.parameters(), *adam, fused=True) for member in self.members]

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """Member after member, each on its own environments; later ones see what earlier ones have become."""
        for index in range(len(self.members)):
            yield from self.update_member(index, rollout, generator)

    def update_member(self, index: int, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """E epochs of minibatches of its part; the others do not change meanwhile and are asked once."""
        config, size = self.config, rollout.num_envs // len(self.members)
        begin, end = index * size, (index + 1) * size
        part, advantage = rollout.columns(begin, end), torch.zeros_like(rollout.advantage)
        advantage[:, begin:end] = normalized(part.advantage, config.advantage_epsilon)
        every = torch.arange(rollout.num_steps * rollout.num_envs, device=rollout.device)
        rows = every.view(rollout.num_steps, -1)[:, begin:end].flatten()  # [T · size] those of its part

        def batch_of(row: Tensor) -> Minibatch:
            return Minibatch(rollout, advantage, row, "shuffled")

        said = [self.others(index, batch_of(some)) for some in rows.tensor_split(config.minibatches)]
        others = said[0].new_zeros(len(every), said[0].shape[-1]).index_copy_(0, rows, torch.cat(said))  # [T · N, A]
        for _ in range(config.epochs):
            for row in transition_order(part, config.minibatches, config.minibatch_order, generator):
                yield self.step(index, batch_of(rows[row]), others)

    def others(self, index: int, batch: Minibatch) -> Tensor:
        """log max_{j ≠ i} π_j `[B, A]` of the observations of a minibatch."""
        others = [member for member in self.members if member is not self.members[index]]
        return log_max_prob(others, batch.obs[0], self.members[index].policy_head.out_features)

    def step(self, index: int, batch: Minibatch, others: Tensor) -> Metrics:
        """One gradient step of one member; `others` `[T · N, A]` is log max_{j ≠ i} π_j of the whole rollout."""
        output = self.members[index](batch.obs, batch.first, batch.state)
        loss, parts = leep_loss(output, batch, others.index_select(0, batch.index).unsqueeze(0), self.config)
        norm = self.descents[index].step(loss)
        return {"loss": loss.detach(), **parts, "grad_norm": norm}

    def parts(self) -> dict[str, Part]:
        adams = {f"adam.{index}": descent for index, descent in enumerate(self.descents)}
        return {"policy": self.policy, **adams}


class SubsetLevels:
    """A LevelChooser: every environment draws, with replacement, from the levels of the member that plays it."""

    def __init__(self, config: LeepConfig, levels: LevelSet, num_envs: int, seed: int) -> None:
        if num_envs % config.subsets:
            raise InputError(f"--envs is {num_envs}; accepted: a multiple of --subsets ({config.subsets})")
        self.subset = level_subsets(config, levels, seed)
        self.member = np.arange(num_envs) * config.subsets // num_envs  # [N] who plays there
        self.streams = [LevelStream(LevelSet(subset), num_envs, seed) for subset in self.subset]

    def choose(self, env: ndarray) -> ndarray:
        level = np.zeros(len(env), dtype=np.int64)
        for index, stream in enumerate(self.streams):
            mine = self.member[env] == index
            level[mine] = stream.next(env[mine])
        return level

    def learn(self, rollout: Rollout) -> None:
        """Nothing: subsets stay what they are."""

    def summary(self) -> dict[str, float]:
        return {}

    def state(self) -> dict[str, ndarray]:
        """How far each environment's sequence has been read, `[M, N]`."""
        return {"drawn": np.stack([stream.drawn for stream in self.streams])}

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        for stream, drawn in zip(self.streams, state["drawn"], strict=True):
            stream.drawn[:] = drawn


def level_subsets(config: LeepConfig, levels: LevelSet, seed: int) -> list[tuple[int, ...]]:
    """The levels of each member; in a bootstrap one drawn twice stands there twice."""
    if levels.seeds is None or len(levels) < config.subsets:
        accepted = f"a finite set of at least --subsets ({config.subsets}) levels"
        raise InputError(f"--levels is {str(levels)!r}; accepted for --algo leep: {accepted}")
    every = np.asarray(levels.seeds, dtype=np.int64)
    if config.subset_levels == "disjoint":
        parts = np.array_split(every, config.subsets)
    elif config.subset_levels == "bootstrap":
        seed_word, member = np.array([seed], dtype=np.uint64), np.arange(config.subsets, dtype=np.uint64)
        word = counter_hash(counter_hash(seed_word, member)[:, None], np.arange(len(every), dtype=np.uint64))  # [M, L]
        parts = list(every[draw_below(word, len(every))])
    else:
        parts = [every] * config.subsets
    return [tuple(part.tolist()) for part in parts]
