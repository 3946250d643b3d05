"""The members asked: M memoryless policies, their logits `[M, N, A]` and the actions sampled from them.

Members run one after another: each one's forward is a batch that fills the cores, or one launch on a GPU
(`fast.fast_networks`). The leader is asked first, then the others by index, until the votes still to come cannot
change the decision (`agents.vote`). With the leader's vote and 6 of 10 that is after the sixth vote at the earliest, or
after the first where the leader's action agrees with nothing. What is decided is what all votes would decide: they are
sampled from streams of their own (`expgen.random`), asked or not. Only the batches become smaller, so that on a
convolution's last digits a vote may depend, as it does on how many environments play side by side. On a GPU, where
waiting for a vote costs more than the next ones, everyone is asked.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from expgen.agents.vote import Panel, Vote
from expgen.errors import InputError
from expgen.networks.actor_critic import Policy, device_of, forward_memoryless
from expgen.random import gumbel_noise


class Ensemble:
    """Frozen members on one device; anything that is called like a Policy and whose output has `logits`."""

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
    """Samples the members' actions; `is_complete` where all who sit are asked, whatever the first ones say."""

    def __init__(self, ensemble: Ensemble, rule: Vote, seeds: list[int], num_actions: int) -> None:
        self.ensemble, self.rule, self.seeds = ensemble, rule, seeds
        self.is_complete = ensemble.device.type != "cpu"
        self.logits = np.zeros((len(seeds), 0, num_actions), dtype=np.float32)  # [M, n, A], NaN for who was not asked

    def __call__(self, obs: ndarray, episode: ndarray, step: ndarray, panel: Panel) -> ndarray:
        """`obs` `[n, …]`, the episode each belongs to and the step in it → actions `[M, n]`, −1 for none."""
        pixels = torch.from_numpy(obs).to(self.ensemble.device)
        if self.is_complete:
            self.logits = self.ensemble.logits(pixels).cpu().numpy()
            noise = [gumbel_noise(seed, episode, step, self.logits.shape[2]) for seed in self.seeds]
            return np.where(panel.sits, (self.logits + np.stack(noise)).argmax(2), -1)
        votes = np.full(panel.sits.shape, -1)  # [M, n]
        self.logits = np.full((*votes.shape, self.logits.shape[2]), np.nan, dtype=np.float32)

        def ask(member: int, about: ndarray) -> None:
            row = np.flatnonzero(about)
            if len(row) == 0:
                return
            logits = self.ensemble.logits_of(member, pixels if len(row) == len(obs) else pixels[row]).numpy()
            noise = gumbel_noise(self.seeds[member], episode[row], step[row], logits.shape[1])
            self.logits[member, row], votes[member, row] = logits, (logits + noise).argmax(1)

        for member in np.unique(panel.leader).tolist():
            ask(member, panel.leader == member)
        for member in range(len(votes)):
            ask(member, panel.sits[member] & (votes[member] < 0) & ~self.rule.is_decided(votes, panel))
        return votes
