"""A minibatch made of given tensors, for tests of losses."""

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
