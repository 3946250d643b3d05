"""Speed of an ensemble's forward, by implementation: `python benchmarks/ensemble_forward.py [--device cuda]`.

The loop over members, vmap over stacked weights, and grouped convolutions written out for IMPALA (whole, and eight
observations at a time so that a layer stays in the cache). The ways take turns and the least time of each counts. On
the CPU that is processor time by default (`--clock wall` for the other): it bears a machine shared with other work.
`--asked` measures what asking only some of the environments saves.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from expgen.agents.ensemble import Ensemble
from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import NetworkConfig, Policy, make_policy
from expgen.networks.impala import ImpalaEncoder

SPECS = {
    "impala": EnvSpec("procgen:maze", (64, 64, 3), "uint8", 15),
    "small": EnvSpec("minimaze", (11, 11, 3), "uint8", 5),
}


class GroupedImpala:
    """All members' convolutions as one with a group per member."""

    def __init__(self, members: list[Policy]) -> None:
        self.num_members = len(members)
        encoders = [member.encoder for member in members if isinstance(member.encoder, ImpalaEncoder)]
        modules = [
            [module for module in encoder.modules() if isinstance(module, torch.nn.Conv2d)] for encoder in encoders
        ]
        self.convs = [_joined(list(layer)) for layer in zip(*modules)]
        self.linear = _stacked([encoder.linear for encoder in encoders])
        self.head = _stacked([member.policy_head for member in members])

    @torch.no_grad()
    def logits(self, obs: Tensor) -> Tensor:
        x, convs = obs.permute(0, 3, 1, 2).float() / 255, iter(self.convs)
        for stage in range(3):
            x = F.max_pool2d(self._conv(x, next(convs), groups=self.num_members if stage else 1), 3, 2, 1)
            for _ in range(2):
                inner = F.relu_(self._conv(F.relu(x), next(convs), self.num_members))
                x = x + self._conv(inner, next(convs), self.num_members)
        x = F.relu(x).reshape(len(obs), self.num_members, -1).transpose(0, 1)  # [M, N, …]
        x = F.relu(torch.baddbmm(self.linear[1], x, self.linear[0]))
        return torch.baddbmm(self.head[1], x, self.head[0])  # [M, N, A]

    @staticmethod
    def _conv(x: Tensor, layer: tuple[Tensor, Tensor], groups: int) -> Tensor:
        return F.conv2d(x, layer[0], layer[1], padding=1, groups=groups)


def _joined(layer: list[torch.nn.Conv2d]) -> tuple[Tensor, Tensor]:
    weight = torch.cat([conv.weight.detach() for conv in layer]).contiguous(memory_format=torch.channels_last)
    return weight, torch.cat([conv.bias.detach() for conv in layer if conv.bias is not None])


def _stacked(layer: list[torch.nn.Linear]) -> tuple[Tensor, Tensor]:
    weight = torch.stack([linear.weight.detach() for linear in layer]).transpose(1, 2)
    return weight, torch.stack([linear.bias.detach() for linear in layer]).unsqueeze(1)


def _ask(ensemble: Ensemble, obs: Tensor, asked: Tensor) -> Tensor:
    return ensemble.logits(obs[asked])


def seconds(
    ways: dict[str, Callable[[], Tensor]], rounds: int, clock: Callable[[], float], is_cuda: bool
) -> dict[str, float]:
    """The least time of each way; the first is the reference whose answer the others must give."""
    best: dict[str, float] = {}
    for index in range(rounds + 1):
        reference: Tensor | None = None
        for name, way in ways.items():
            start = clock()
            logits = way()
            if is_cuda:
                torch.cuda.synchronize()
            if index:  # the first round warms up
                best[name] = min(best.get(name, float("inf")), clock() - start)
            reference = logits if reference is None else reference
            torch.testing.assert_close(
                logits, reference, rtol=1e-2 if is_cuda else 1e-4, atol=1e-2 if is_cuda else 1e-4
            )
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--network", choices=SPECS, default="impala")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--asked", action="store_true", help="the loop on all, ¾, ½ and ¼ of the environments instead")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    spec, is_cuda = SPECS[args.network], args.device.startswith("cuda")
    device = torch.device(args.device)
    members = [
        make_policy(spec, NetworkConfig(), torch.Generator().manual_seed(j), device).eval() for j in range(args.members)
    ]
    obs = torch.randint(256, (args.num_envs, *spec.obs_shape), dtype=torch.uint8).to(device)
    clock = time.perf_counter if is_cuda or args.clock == "wall" else time.process_time
    loop, stacked = Ensemble(members, "loop"), Ensemble(members, "vmap")
    ways: dict[str, Callable[[], Tensor]] = {"loop": lambda: loop.logits(obs)}
    if args.asked:
        chosen = Ensemble(members)
        for part in (4, 3, 2, 1):
            asked = torch.arange(args.num_envs * part // 4, device=device)
            best = seconds({"asked": partial(_ask, chosen, obs, asked)}, args.rounds, clock, is_cuda)
            print(
                f"{args.network}, {chosen.method}, {len(asked)} of {args.num_envs} asked: {best['asked'] * 1e3:,.1f} ms"
            )
        return
    ways["vmap"] = lambda: stacked.logits(obs)
    if args.network == "impala":
        grouped = GroupedImpala(members)
        ways["grouped"] = lambda: grouped.logits(obs)
        ways["grouped, 8 at a time"] = lambda: torch.cat([grouped.logits(part) for part in obs.split(8)], 1)
    best = seconds(ways, args.rounds, clock, is_cuda)
    for name, least in best.items():
        speed = args.num_envs / least
        print(
            f"{args.network}, {name}: {least * 1e3:,.1f} ms, {speed:,.0f} obs/s, {best['loop'] / least:.2f} × the loop"
        )


if __name__ == "__main__":
    main()
