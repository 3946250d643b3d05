"""The members asked: M memoryless policies, their logits `[M, N, A]` and the actions sampled from them.

**Logits.** Two ways to compute them, the faster of which is taken by what the members are made of. Measured by
`benchmarks/ensemble_forward.py`: 10 members, 64 observations, torch 2.13, a 2.8 GHz Xeon; speed relative to the loop
(one thread by processor time; two threads by the wall clock of a machine with other work).

| members | way | 1 thread | 2 threads |
|---|---|---|---|
| IMPALA | loop | 1 (721 ms) | 1 (490 ms) |
| IMPALA | torch.func's vmap over stacked weights | 0.32 | 0.28 |
| IMPALA | grouped convolutions by hand; 8 observations at a time | 0.74; 0.97 | 0.68; 1.10 |
| small | vmap | 1.14 | 1.96 |

So convolutions take the loop: each member's forward is a batch that fills the cores already, while groups make small
convolutions of it; the last 10 % on two threads are not worth a second copy of the network. Dense layers take vmap:
there it is the number of calls that costs. On a GPU the rule is the same; there each member's forward is one launch
(`fast.replayed_policy`). Members of differing architecture always take the loop.

**Votes.** Where members run one after another on the CPU, the leader is asked first, then the others by index, until
the votes still to come cannot change the decision (`agents.vote`). With the leader's vote and 6 of 10 that is after the
sixth vote at the earliest, or after the first where the leader's action agrees with nothing. What is decided is what
all votes would decide: they are sampled from streams of their own (`expgen.random`), asked or not. Only the batches
become smaller, so that on a convolution's last digits a vote may depend, as it does on how many environments play side
by side. Where one call asks all (vmap), and on a GPU, where waiting for a vote costs more than the next ones, everyone
is asked.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from expgen.agents.vote import Panel, Vote
from expgen.errors import InputError
from expgen.networks.actor_critic import Policy, device_of
from expgen.networks.small import has_convolution
from expgen.random import gumbel_noise


class Ensemble:
    """Frozen members on one device; anything that is called like a Policy and whose output has `logits`.

    `method` says how the forward is done: "loop" or "vmap"; the second copies the weights when it is made.
    """

    def __init__(self, members: Sequence[Policy], method: Literal["auto", "loop", "vmap"] = "auto") -> None:
        if not members:
            raise InputError("members is empty; accepted: 1 policy or more")
        if any(member.state_size for member in members):
            raise InputError("members have memory; accepted: memoryless policies")
        self.members = list(members)
        self.device = device_of(*members)
        if method == "auto":
            method = "vmap" if len(members) > 1 and _are_alike(members) and not has_convolution(members[0]) else "loop"
        self.method = method
        if method == "vmap":
            parameters, buffers = stack_module_state(self.members)
            self._weights = {name: weight.detach() for name, weight in (parameters | buffers).items()}
            self._together = vmap(self._logits_with, in_dims=(0, None))

    @torch.no_grad()
    def logits(self, obs: Tensor) -> Tensor:
        """`obs` `[N, …]` → every member's logits `[M, N, A]`."""
        if self.method == "vmap":
            return self._together(self._weights, obs)
        return torch.stack([self.logits_of(index, obs) for index in range(len(self.members))])

    @torch.no_grad()
    def logits_of(self, member: int, obs: Tensor) -> Tensor:
        """`obs` `[N, …]` → one member's logits `[N, A]`."""
        return self.members[member](*_arguments(obs)).logits[0]

    def _logits_with(self, weights: dict[str, Tensor], obs: Tensor) -> Tensor:
        output: Any = functional_call(self.members[0], weights, _arguments(obs))
        return output.logits[0]  # [N, A]


def _arguments(obs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What a policy wants to hear of one step: obs `[1, N, …]`, first `[1, N]`, no memory `[N, 0]`."""
    first = torch.zeros(1, len(obs), dtype=torch.bool, device=obs.device)
    return obs.unsqueeze(0), first, torch.zeros(len(obs), 0, device=obs.device)


def _are_alike(members: Sequence[nn.Module]) -> bool:
    """Same classes of modules in the same places, same shapes of weights, and some of them."""
    layouts = [
        (
            [(name, type(module)) for name, module in member.named_modules()],
            [(name, weight.shape) for name, weight in member.state_dict().items()],
        )
        for member in members
    ]
    return len(layouts[0][1]) > 0 and all(layout == layouts[0] for layout in layouts)


class Poll:
    """Samples the members' actions; `is_complete` where all who sit are asked, whatever the first ones say."""

    def __init__(self, ensemble: Ensemble, rule: Vote, seeds: list[int], num_actions: int) -> None:
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
