"""A copy of a policy for evaluation that uses only its own modules, in float32.

`fast.fast_networks` accelerates networks by replacing `encode` (through which modules call their encoder) and `scan`
(Memory's GRU), and by setting `is_bfloat16` of encoders. The replacements keep references to the original network, so
a copy must reset them.
"""

import copy
from typing import Any

from torch import nn

from expgen.networks.actor_critic import Policy
from expgen.networks.memory import Memory


def has_replaceable_encode(module: nn.Module) -> bool:
    """Whether a module calls its `encoder` through an `encode` attribute that may be replaced."""
    return hasattr(module, "encode") and hasattr(module, "encoder")


def plain_copy(policy: Policy) -> Policy:
    """Return a copy of the policy in evaluation mode, without accelerated parts."""
    plain = copy.deepcopy(policy).eval()
    modules: list[Any] = list(plain.modules())
    for module in modules:
        if has_replaceable_encode(module):
            module.encode = module.encoder.forward
        if hasattr(module, "is_bfloat16"):
            module.is_bfloat16 = False
        if isinstance(module, Memory):
            module.scan = None
    return plain
