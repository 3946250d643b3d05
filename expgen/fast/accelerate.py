"""Which of the fast ways a learner takes: streams and graphs on a GPU, written-out gradients on the CPU, or neither.

A `Lane` is where one learner's work runs: `cuda_lane` on a GPU; on the CPU plain calls (`training.lane`), or, for a
dense policy without memory, the same arithmetic written out (`dense_lane`, `dense_ppo`). Networks change in
`fast_networks`, an algorithm's steps in `recorded_steps`. A learner is handed the result and asks no more.
"""

import torch

from expgen.algorithms.ppo import PPO
from expgen.algorithms.protocol import Algorithm
from expgen.fast.cuda_lane import CudaLane
from expgen.fast.dense_lane import DenseLane
from expgen.fast.dense_ppo import DensePPO
from expgen.fast.fast_networks import accelerate_networks, is_capturable
from expgen.fast.recorded_steps import RECORDED, accelerate_optimizers, record_steps
from expgen.networks.actor_critic import Policy
from expgen.networks.small import SmallEncoder
from expgen.rollout.rollout import Rollout
from expgen.training.lane import Lane, PlainLane

DENSE_MAX_INPUTS = 4096  # numbers in an observation; beyond, keeping each as float32 costs more memory than it is worth


def accelerate(algorithm: Algorithm, rollout: Rollout) -> tuple[Algorithm, Lane]:
    """Make a new `algorithm` as fast as the device of `rollout` allows; returns it and the lane that acts for it.

    Use the one returned from here on. It computes the same function up to rounding and writes the same checkpoints;
    tests hold each fast way to the plain one.
    """
    lane = make_lane(algorithm.policy, rollout, may_be_dense=type(algorithm) in RECORDED)
    if isinstance(lane, DenseLane) and type(algorithm) is PPO:
        return DensePPO(algorithm, lane.network, lane.rows), lane
    if isinstance(lane, CudaLane):
        if algorithm.value_network is not None:
            accelerate_networks(algorithm.value_network)
        accelerate_optimizers(algorithm)
        if is_capturable(algorithm.policy):
            record_steps(algorithm)
    return algorithm, lane


def make_lane(policy: Policy, rollout: Rollout, may_be_dense: bool = True) -> Lane:
    """The fastest lane for this policy on its device.

    A dense one moves the weights into one tensor, which not every optimiser of a user's own algorithm would respect.
    """
    if rollout.device.type == "cuda":
        return CudaLane(policy, rollout)
    if may_be_dense and is_dense(policy) and rollout.obs[0, 0].numel() <= DENSE_MAX_INPUTS:
        return DenseLane(policy, rollout)
    return PlainLane(policy, rollout)


def is_dense(policy: Policy) -> bool:
    """Whether the policy is a SmallEncoder and two heads in float32, nothing else: what `dense_network` computes."""
    is_float32 = all(parameter.dtype == torch.float32 for parameter in policy.parameters())
    return type(policy) is Policy and isinstance(policy.encoder, SmallEncoder) and policy.memory is None and is_float32
