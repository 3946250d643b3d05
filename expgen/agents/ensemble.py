"""M memoryless policies asked together: one call, logits `[M, N, A]`.

Two ways to compute it, the faster of which is taken by what the members are made of. Measured by
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
"""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from expgen.errors import InputError
from expgen.networks.actor_critic import Policy, device_of
from expgen.networks.small import has_convolution


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
