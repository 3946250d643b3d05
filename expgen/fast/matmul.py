"""Matrix products on the CPU in float32, by the faster of the two libraries that torch contains.

torch.mm uses MKL. On CPUs with AVX-512 that are not Intel's, oneDNN takes half the time (measured on an AMD EPYC).
torch uses it for convolutions, but for products in float32 only in compiled code, through the operator below.
"""

from functools import cache
from pathlib import Path

import torch
from torch import Tensor

CPU_INFO = Path("/proc/cpuinfo")
onednn_linear = getattr(torch.ops.mkldnn, "_linear_pointwise", None)  # x Wᵀ from x [M, K], W [N, K]; None: no oneDNN


def matmul(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """Write the product of `a` `[M, K]` and `b` `[K, N]` to `out` `[M, N]` and return it; all three may be views."""
    return onednn_matmul(a, b, out) if prefers_onednn() else torch.mm(a, b, out=out)


def onednn_matmul(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """Do what `matmul` does, with oneDNN."""
    assert onednn_linear is not None
    return out.copy_(onednn_linear(a, b.t(), None, "none", [], ""))  # without bias and activation


@cache
def prefers_onednn() -> bool:
    """Return whether oneDNN is faster here: MKL would be used, and the CPU has AVX-512 but is not Intel's."""
    has_both = torch.backends.mkl.is_available() and onednn_linear is not None
    return has_both and torch.backends.cpu.get_cpu_capability() == "AVX512" and not is_intel(CPU_INFO)


def is_intel(cpu_info: Path) -> bool:
    """Return whether Linux's description of the CPU names Intel, or cannot be read."""
    try:
        return "GenuineIntel" in cpu_info.read_text()
    except OSError:
        return True
