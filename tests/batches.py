"""A minibatch whose tensors are given, not gathered from a rollout: what a loss reads, to work out by hand."""

from typing import NamedTuple

from torch import Tensor


class GivenBatch(NamedTuple):
    """The fields of `rollout.minibatch.Minibatch`."""

    obs: Tensor
    first: Tensor
    state: Tensor
    action: Tensor
    log_prob: Tensor
    value: Tensor
    advantage: Tensor
    value_target: Tensor
