"""Asking the members, no further than the decision needs.

The leader is asked first, then the others by index, until the votes still to come cannot change the decision
(agents.vote). With the leader's vote and 6 of 10 that is after the sixth vote at the earliest, or after the first where
the leader's action agrees with nothing. What is decided is what all votes would decide: they are sampled from streams
of their own (expgen.random), asked or not. Only the batches become smaller, so that on a convolution's last digits a
vote may depend, as it does on how many environments play side by side.

This is for members that run one after another on the CPU. Where one call asks all of them (vmap), and on a GPU, where
waiting for a vote costs more than the next ones, everyone is asked.
"""

import numpy as np
import torch
from numpy import ndarray

from expgen.agents.ensemble import Ensemble
from expgen.agents.panel import Panel
from expgen.agents.vote import VoteRule
from expgen.random import gumbel_noise


class Poll:
    """Samples the members' actions; `is_complete` where all who sit are asked, whatever the first ones say."""

    def __init__(self, ensemble: Ensemble, rule: VoteRule, seeds: list[int], num_actions: int) -> None:
        self.ensemble, self.rule, self.seeds = ensemble, rule, seeds
        self.is_complete = ensemble.method == "vmap" or ensemble.device.type != "cpu"
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
