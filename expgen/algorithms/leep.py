"""LEEP (Ghosh et al. 2021, arXiv 2107.06277): an ensemble of policies, each trained on a subset of the levels.

One learner owns M members. The environments are split evenly among them, and each member plays its own levels. Members
are updated one after another by PPO with a KL penalty towards the joint policy π̄, the normalised maximum of all
members. At test time π̄ plays.

Differences from the implementation released with ExpGen: level subsets contain training levels only (theirs contain
test levels), π̄ is sampled from its probabilities (theirs uses these as logits, which is nearly uniform play), and the
penalty is the LEEP paper's KL(π_i ‖ π̄) (`--kl-direction from-joint` for theirs).
"""

from collections.abc import Iterator, Mapping
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
from expgen.networks.actor_critic import Policy, PolicyOutput, forward_memoryless, policies_in
from expgen.networks.state import Part
from expgen.random import counter_hash, draw_below
from expgen.rollout.gae import normalized
from expgen.rollout.level_choice import LevelChooser
from expgen.rollout.minibatch import Minibatch, Order, minibatch_rows
from expgen.rollout.rollout import Rollout
from expgen.settings import changed_default, setting


@dataclass(frozen=True)
class LeepConfig(PPOConfig):
    """PPO's settings, and those of the ensemble."""

    minibatch_order: Order = changed_default(PPOConfig, "minibatch_order", "shuffled")
    subsets: int = setting(4, "M: number of members, each with its own levels and an equal share of --envs", low=1)
    subset_levels: Literal["bootstrap", "disjoint", "all"] = setting(
        "bootstrap", "a member's levels: a sample with replacement of the same size, an equal share, or all"
    )
    kl_coef: float = setting(1.0, "α: weight of the KL penalty towards the joint policy", low=0)
    kl_direction: Literal["to-joint", "from-joint"] = setting(
        "to-joint", "KL(π_i ‖ π̄) as in the LEEP paper, or KL(π̄ ‖ π_i) as in ExpGen's release"
    )


def leep_loss(output: PolicyOutput, batch: Minibatch, others: Tensor, config: LeepConfig) -> tuple[Tensor, Metrics]:
    """L_i = L_PPO + α mean KL(π_i ‖ π̄),  π̄ = max_j π_j / Σ_a max_j π_j  without gradient, and its named parts.

    `others` `[T, B, A]` is log max_{j ≠ i} π_j, constant during member i's update.
    """
    ppo, parts = ppo_loss(output, batch, config)
    own = torch.log_softmax(output.logits, -1)
    joint = torch.log_softmax(torch.maximum(own.detach(), others), -1)  # log π̄
    if config.kl_direction == "to-joint":
        kl = (own.exp() * (own - joint)).sum(-1).mean()
    else:
        kl = (joint.exp() * (joint - own)).sum(-1).mean()
    return ppo + config.kl_coef * kl, {**parts, "joint_kl": kl.detach()}


class Leep(Algorithm):
    """Owns the joint policy and one optimiser per member."""

    def __init__(self, policy: Policy, config: LeepConfig) -> None:
        self.policy, self.config = policy, config
        self.members = policies_in(policy)
        adam = (config.learning_rate, config.adam_epsilon, config.max_grad_norm)
        self.descents = [Descent(member.parameters(), *adam, fused=True) for member in self.members]

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """Update the members one after another, each on its own environments; yield the metrics of each minibatch."""
        for index in range(len(self.members)):
            yield from self.update_member(index, rollout, generator)

    def update_member(self, index: int, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """Train one member for E epochs on its environments; the other members' probabilities are computed once."""
        config, T, N = self.config, rollout.num_steps, rollout.num_envs
        size = N // len(self.members)
        own = slice(index * size, (index + 1) * size)  # this member's environments
        rows = torch.arange(T * N, device=rollout.device).view(T, N)[:, own].flatten()  # [T · size] rows of [T · N]
        advantage = torch.zeros_like(rollout.advantage)  # [T, N]
        advantage[:, own] = normalized(rollout.advantage[:, own], config.advantage_epsilon)

        def minibatch(row: Tensor) -> Minibatch:
            return Minibatch(rollout, advantage, row, "shuffled")

        chunks = rows.tensor_split(config.minibatches)
        log_max = torch.cat([self.log_max_of_others(index, minibatch(chunk)) for chunk in chunks])  # [T · size, A]
        others = log_max.new_zeros(T * N, log_max.shape[-1]).index_copy_(0, rows, log_max)  # [T · N, A]
        for _ in range(config.epochs):
            for row in minibatch_rows(T, size, config.minibatches, config.minibatch_order, generator):
                yield self.step(index, minibatch(rows[row]), others)

    @torch.no_grad()
    def log_max_of_others(self, index: int, batch: Minibatch) -> Tensor:
        """Return log max_{j ≠ i} π_j(a|o) `[B, A]` for the observations of a minibatch; −∞ if there is one member."""
        num_actions = self.members[index].policy_head.out_features
        log_max = torch.full((len(batch.index), num_actions), -torch.inf, device=batch.obs.device)
        for member in self.members:
            if member is not self.members[index]:
                log_prob = torch.log_softmax(forward_memoryless(member, batch.obs).logits[0], -1)
                log_max = torch.maximum(log_max, log_prob)
        return log_max

    def step(self, index: int, batch: Minibatch, others: Tensor) -> Metrics:
        """Take one gradient step of one member; `others` `[T · N, A]` is log max_{j ≠ i} π_j for the whole rollout."""
        output = self.members[index](batch.obs, batch.first, batch.state)
        loss, parts = leep_loss(output, batch, others.index_select(0, batch.index).unsqueeze(0), self.config)
        norm = self.descents[index].step(loss)
        return {"loss": loss.detach(), **parts, "grad_norm": norm}

    def parts(self) -> dict[str, Part]:
        adams = {f"adam.{index}": descent for index, descent in enumerate(self.descents)}
        return {"policy": self.policy, **adams}


class SubsetLevels(LevelChooser):
    """Each environment samples its levels, with replacement, from those of the member that plays it."""

    def __init__(self, config: LeepConfig, levels: LevelSet, num_envs: int, seed: int) -> None:
        if num_envs % config.subsets:
            raise InputError(f"--envs is {num_envs}; accepted: a multiple of --subsets ({config.subsets})")
        self.subset = level_subsets(config, levels, seed)
        self.member = np.arange(num_envs) * config.subsets // num_envs  # [N] member that plays each environment
        self.streams = [LevelStream(LevelSet(subset), num_envs, seed) for subset in self.subset]

    def choose(self, env: ndarray) -> ndarray:
        level = np.zeros(len(env), dtype=np.int64)
        for index, stream in enumerate(self.streams):
            is_own = self.member[env] == index
            level[is_own] = stream.next(env[is_own])
        return level

    def state(self) -> dict[str, ndarray]:
        return {"drawn": np.stack([stream.drawn for stream in self.streams])}  # [M, N]

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        for stream, drawn in zip(self.streams, state["drawn"], strict=True):
            stream.drawn[:] = drawn


def level_subsets(config: LeepConfig, levels: LevelSet, seed: int) -> list[tuple[int, ...]]:
    """Return the levels of each member; a bootstrap may contain a level several times."""
    if levels.seeds is None or len(levels) < config.subsets:
        accepted = f"a finite set of at least --subsets ({config.subsets}) levels"
        raise InputError(f"--levels is {str(levels)!r}; accepted for --algo leep: {accepted}")
    all_levels = np.asarray(levels.seeds, dtype=np.int64)  # [L]
    if config.subset_levels == "disjoint":
        subsets = np.array_split(all_levels, config.subsets)
    elif config.subset_levels == "bootstrap":
        member, draw = np.arange(config.subsets, dtype=np.uint64), np.arange(len(all_levels), dtype=np.uint64)
        key = counter_hash(np.array([seed], dtype=np.uint64), member)  # [M]
        subsets = list(all_levels[draw_below(counter_hash(key[:, None], draw), len(all_levels))])  # [M, L]
    else:
        subsets = [all_levels] * config.subsets
    return [tuple(subset.tolist()) for subset in subsets]
