"""FLOPs of a training step, and the device's peak FLOP/s: together an upper bound of training speed.

FLOPs are counted by running a learner with the same networks on a small rollout on the CPU and adding up all matrix
products and convolutions. A GRU, about 1 % of an IMPALA encoder, is not counted where torch runs it as one operation.
"""

import dataclasses
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode

from expgen.bench.load import synchronize
from expgen.bench.speed import rate
from expgen.fast.matmul import matmul, onednn_linear
from expgen.runs.config import TrainConfig
from expgen.runs.plan import build_learner, plans_of
from expgen.training.learner import Phase
from expgen.training.resources import Resources

_ENVS, _STEPS = 8, 8  # size of the counted rollout; minibatches shrink with it
_ON_CPU = Resources(torch.device("cpu"), torch_threads=1, env_threads=1, updates_at_once=1)
_SIDES = {"cuda": 8192, "cpu": 1024}  # of the square matrices that are multiplied


def _flops_of_linear(x: torch.Size, weight: torch.Size, *_: Any, **__: Any) -> int:
    """FLOPs of x Wᵀ, from the shapes of x `[M, K]` and W `[N, K]`."""
    return 2 * x.numel() * weight[0]


_OTHER_PRODUCTS = {onednn_linear: _flops_of_linear} if onednn_linear else {}  # those that torch does not count itself


class Flops(NamedTuple):
    """FLOPs per environment step."""

    acting: float
    learning: float

    @property
    def total(self) -> float:
        return self.acting + self.learning


def flops_per_step(config: TrainConfig) -> Flops:
    """Return the mean over the algorithm's cycle of updates."""
    algorithm: Any = config.algorithm
    if hasattr(algorithm, "policy_phases"):  # its cost per step does not depend on its frequency
        algorithm = dataclasses.replace(algorithm, policy_phases=1)
    small = dataclasses.replace(config, envs=_ENVS, rollout_steps=_STEPS, members=1, algorithm=algorithm)
    learner = build_learner(small, plans_of(small)[0], _ON_CPU)
    rollouts, acting = int(getattr(algorithm, "value_every", 1)), 0
    try:
        with FlopCounterMode(display=False, custom_mapping=_OTHER_PRODUCTS) as counter:
            for _ in range(rollouts):
                before = counter.get_total_flops()
                for phase in learner.iterate():
                    if phase is Phase.READY:
                        acting += counter.get_total_flops() - before
    finally:
        learner.close()
    steps = rollouts * _ENVS * _STEPS
    return Flops(acting / steps, (counter.get_total_flops() - acting) / steps)


def peak_flops(device: torch.device, seconds: float) -> float:
    """Return FLOP/s of a large matrix product in the dtype of training: bfloat16 on a GPU, float32 on the CPU."""
    side = _SIDES[device.type]
    matrix = torch.ones(side, side, device=device, dtype=torch.bfloat16 if device.type == "cuda" else torch.float32)
    out = torch.empty_like(matrix)
    multiply = torch.mm if device.type == "cuda" else matmul

    def work() -> float:
        for _ in range(4):
            multiply(matrix, matrix, out=out)
        synchronize(device)
        return 4 * 2.0 * side**3

    return rate(work, seconds)
