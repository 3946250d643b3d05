"""A copy of a policy for evaluation, whatever made the original fast.

`Policy` and `ValueNetwork` call their encoder through `encode`, `Memory` its GRU through `scan`, and encoders compute
in bf16 if told so: there `fast.fast_networks` puts faster ways, which hold on to the original.
"""

import copy
from typing import Any

from torch import nn

from expgen.networks.actor_critic import Policy
from expgen.networks.memory import Memory


def has_seam(part: nn.Module) -> bool:
    """Whether a module calls its `encoder` through an `encode` that may be replaced."""
    return hasattr(part, "encode") and hasattr(part, "encoder")


def plain_copy(policy: Policy) -> Policy:
    """A copy of the policy for evaluation, computed by its own modules in float32."""
    plain = copy.deepcopy(policy).eval()
    parts: list[Any] = list(plain.modules())
    for part in parts:
        if has_seam(part):
            part.encode = part.encoder.forward
        if hasattr(part, "is_bfloat16"):
            part.is_bfloat16 = False
        if isinstance(part, Memory):
            part.scan = None
    return plain
