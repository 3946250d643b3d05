"""Choose the fast path of a learner: streams and graphs on a GPU; hand-written gradients or bfloat16 on the CPU.

A `Lane` runs one learner's work: `cuda_lane` on a GPU; on the CPU `training.lane`, or `dense_lane` with `dense_ppo` for
a dense policy without memory. `fast_networks` replaces parts of networks, `recorded_steps` an algorithm's steps.
"""

import torch

from expgen.algorithms.ppo import PPO
from expgen.algorithms.protocol import Algorithm
from expgen.errors import InputError
from expgen.fast.cuda_lane import CudaLane
from expgen.fast.dense_lane import DenseLane
from expgen.fast.dense_ppo import DensePPO
from expgen.fast.fast_networks import accelerate_networks, is_capturable, use_bfloat16, use_threaded_encoders
from expgen.fast.recorded_steps import RECORDED, accelerate_optimizers, record_steps
from expgen.networks.actor_critic import Policy
from expgen.networks.impala import Precision
from expgen.networks.small import SmallEncoder
from expgen.rollout.rollout import Rollout
from expgen.training.lane import Lane, PlainLane

DENSE_MAX_INPUTS = 4096  # elements of an observation; larger ones take too much memory as float32


def accelerate(
    algorithm: Algorithm, rollout: Rollout, precision: Precision = "auto", learner: str = "the policy"
) -> tuple[Algorithm, Lane]:
    """Return the fastest form of an untrained `algorithm` on the device of `rollout`, and the lane that acts for it.

    Use the returned algorithm instead of the given one. It computes the same function up to rounding and writes the
    same checkpoints; tests compare each fast path with the plain one.

    precision: that of convolutions; `auto` is bfloat16 on a GPU and float32 on the CPU.
    learner: its name in errors.
    """
    networks = [part for part in (algorithm.policy, algorithm.value_network) if part is not None]
    if rollout.device.type == "cpu":
        if precision == "bfloat16":
            use_bfloat16(networks, learner)
        use_threaded_encoders(networks)
    elif precision == "float32":
        raise InputError("--precision is float32 but the device is a GPU; accepted: auto, bfloat16")
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
    """Return the fastest lane for this policy on its device.

    may_be_dense: False for a user's own algorithm, because DenseLane moves the weights into one tensor, and an
        optimiser made before that may not follow them.
    """
    if rollout.device.type == "cuda":
        return CudaLane(policy, rollout)
    if may_be_dense and is_dense(policy) and rollout.obs[0, 0].numel() <= DENSE_MAX_INPUTS:
        return DenseLane(policy, rollout)
    return PlainLane(policy, rollout)


def is_dense(policy: Policy) -> bool:
    """Return whether the policy is just a SmallEncoder and two heads in float32, as `dense_network` requires."""
    is_float32 = all(parameter.dtype == torch.float32 for parameter in policy.parameters())
    return type(policy) is Policy and isinstance(policy.encoder, SmallEncoder) and policy.memory is None and is_float32
