"""The ensemble: M memoryless policies, their logits `[M, N, A]` and the actions sampled from them.

Members run one after another: each forward pass is a batch that uses all cores, or one launch on a GPU
(`fast.fast_networks`). The leader votes first, then the others by index, until the remaining votes cannot change the
decision (`agents.vote`). The decision equals that of all votes, because every member has its own random stream; only
the batches become smaller, which can change the last digits of a convolution and thus, rarely, a vote, just as another
number of environments can. On a GPU all members vote, since waiting for a vote costs more than computing the rest.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from expgen.agents.vote import Panel, VoteRule
from expgen.errors import InputError
from expgen.networks.actor_critic import Policy, device_of, forward_memoryless
from expgen.random import gumbel_noise


class Ensemble:
    """Frozen members on one device; any callables with the signature of a Policy whose output has `logits`."""

    def __init__(self, members: Sequence[Policy]) -> None:
        if not members:
            raise InputError("members is empty; accepted: 1 policy or more")
        if any(member.state_size for member in members):
            raise InputError("members have memory; accepted: memoryless policies")
        self.members = list(members)
        self.device = device_of(*members)

    def logits(self, obs: Tensor) -> Tensor:
        """`obs` `[N, …]` → every member's logits `[M, N, A]`."""
        return torch.stack([self.logits_of(index, obs) for index in range(len(self.members))])

    @torch.no_grad()
    def logits_of(self, member: int, obs: Tensor) -> Tensor:
        """`obs` `[N, …]` → one member's logits `[N, A]`."""
        return forward_memoryless(self.members[member], obs.unsqueeze(0)).logits[0].detach()


class Poll:
    """Samples the members' actions; with `is_complete` all voters are evaluated, even if the vote is decided."""

    def __init__(self, ensemble: Ensemble, rule: VoteRule, seeds: list[int], num_actions: int) -> None:
        self.ensemble, self.rule, self.seeds = ensemble, rule, seeds
        self.is_complete = ensemble.device.type != "cpu"
        self.logits = np.zeros((len(seeds), 0, num_actions), dtype=np.float32)  # [M, n, A], NaN if not evaluated

    def __call__(self, obs: ndarray, episode: ndarray, step: ndarray, panel: Panel) -> ndarray:
        """`obs` `[n, …]`, their `episode` and `step` `[n]` → actions `[M, n]`, −1 for members not evaluated."""
        pixels = torch.from_numpy(obs).to(self.ensemble.device)
        if self.is_complete:
            self.logits = self.ensemble.logits(pixels).cpu().numpy()
            noise = [gumbel_noise(seed, episode, step, self.logits.shape[2]) for seed in self.seeds]
            return np.where(panel.is_voter, (self.logits + np.stack(noise)).argmax(2), -1)
        votes = np.full(panel.is_voter.shape, -1)  # [M, n]
        self.logits = np.full((*votes.shape, self.logits.shape[2]), np.nan, dtype=np.float32)

        def evaluate(member: int, where: ndarray) -> None:
            row = np.flatnonzero(where)
            if len(row) == 0:
                return
            logits = self.ensemble.logits_of(member, pixels if len(row) == len(obs) else pixels[row]).numpy()
            noise = gumbel_noise(self.seeds[member], episode[row], step[row], logits.shape[1])
            self.logits[member, row], votes[member, row] = logits, (logits + noise).argmax(1)

        for member in np.unique(panel.leader).tolist():
            evaluate(member, panel.leader == member)
        for member in range(len(votes)):
            evaluate(member, panel.is_voter[member] & (votes[member] < 0) & ~self.rule.is_decided(votes, panel))
        return votes
