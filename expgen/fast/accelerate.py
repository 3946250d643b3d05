"""Which of the fast ways a learner takes: streams and graphs on a GPU, written-out gradients on the CPU, or neither.

A `Lane` is where one learner's work runs: `cuda_lane` on a GPU; on the CPU plain calls (`lane`), or, for a dense policy
without memory, the same arithmetic written out (`dense_lane`, `dense_ppo`). Networks change in `fast_networks`.
"""

import torch
from torch import Tensor

from expgen.algorithms.algorithm import Algorithm, HasCritic
from expgen.algorithms.ppo import PPO
from expgen.algorithms.runner import HasRunner
from expgen.fast.cuda_lane import CudaLane
from expgen.fast.dense_lane import DenseLane
from expgen.fast.dense_ppo import DensePPO
from expgen.fast.fast_networks import accelerate_networks, is_capturable
from expgen.fast.graphs import Graphs
from expgen.networks.actor_critic import Policy
from expgen.networks.small import SmallEncoder
from expgen.rollout.rollout import Rollout
from expgen.training.lane import Lane, PlainLane

DENSE_MAX_INPUTS = 4096  # numbers in an observation; beyond, keeping each as float32 costs more memory than it is worth
MINIBATCHES_AHEAD = 2  # how far the host may run ahead of the GPU in one learner's update


def make_lane(policy: Policy, rollout: Rollout) -> Lane:
    """The fastest lane for this policy on its device."""
    if rollout.device.type == "cuda":
        return CudaLane(policy, rollout)
    if is_dense(policy) and rollout.obs[0, 0].numel() <= DENSE_MAX_INPUTS:
        return DenseLane(policy, rollout)
    return PlainLane(policy, rollout)


def is_dense(policy: Policy) -> bool:
    """Whether the policy is a SmallEncoder and two heads in float32, nothing else: what `dense_network` computes."""
    is_float32 = all(parameter.dtype == torch.float32 for parameter in policy.parameters())
    return type(policy) is Policy and isinstance(policy.encoder, SmallEncoder) and policy.memory is None and is_float32


def make_learning(algorithm: Algorithm, lane: Lane) -> Algorithm:
    """The fastest form of `algorithm` for the lane it learns in; the same checkpoints, the same function."""
    if isinstance(lane, DenseLane) and type(algorithm) is PPO:
        return DensePPO(algorithm, lane.network, lane.rows)
    if isinstance(lane, CudaLane) and isinstance(algorithm, HasCritic):
        accelerate_networks(algorithm.value_network)
    if isinstance(lane, CudaLane) and isinstance(algorithm, HasRunner) and is_capturable(algorithm.policy):
        algorithm.run = Graphs(algorithm, lane.rollout)
    return algorithm


def mean_of(metrics: list[dict[str, Tensor]]) -> dict[str, float]:
    """Each metric's mean over the minibatches that have it; one transfer for all of them."""
    names = list(dict.fromkeys(name for row in metrics for name in row))
    means = [torch.stack([row[name].float() for row in metrics if name in row]).mean() for name in names]
    return dict(zip(names, torch.stack(means).tolist(), strict=True))
