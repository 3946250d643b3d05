"""GRU kernels of cuda/gru.cu: a cluster of thread blocks processes all steps of eight environments (gru.py)."""

import torch
from torch import Tensor

from expgen.fast.kernels.cuda_module import GRU, cuda_module, has_compiler
from expgen.fast.kernels.gru import GATES
from expgen.fast.kernels.impala_kernels import Launcher

SIZES = (64, 128, 256)  # hidden sizes that gru.cu is compiled for
UNITS = 32  # per thread block
ENVS = 8  # per cluster
_SUMS = 4 * ENVS * 36 * 4  # bytes of shared memory for one gate's sums


def has_clusters(device: torch.device) -> bool:
    """Return whether `device` has thread block clusters and NVRTC can compile for it."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0) and has_compiler()


class ClusterGru:
    """`GruKernels` in CUDA C++."""

    product = torch.bfloat16

    def __init__(self, launcher: Launcher) -> None:
        self.launch = launcher.launch

    @classmethod
    def on(cls, device: torch.device) -> "ClusterGru":
        """Return the kernels on a GPU."""
        return cls(cuda_module(device, GRU))

    def prepare(self, weight: Tensor) -> Tensor:
        return weight.to(self.product)

    def forward(self, a: Tensor, keep: Tensor, start: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        num_steps, num_envs, _ = a.shape
        size = start.shape[-1]
        out = start.new_empty(num_steps, num_envs, size)
        gates = start.new_empty(num_steps, num_envs, GATES, size)
        arguments = (a, keep, start, weight, bias, out, gates, num_steps, num_envs)
        name = f"gru_forward_{size}" if num_steps > 1 else f"gru_step_{size}"
        self.launch(name, _grid(size, num_envs), _input_bytes(size) + 3 * _SUMS, *arguments)
        return out, gates

    def backward(
        self, d_out: Tensor, keep: Tensor, start: Tensor, weight: Tensor, out: Tensor, gates: Tensor
    ) -> Tensor:
        num_steps, num_envs, size = out.shape
        d_gates = torch.empty_like(gates)
        transposed = weight.to(self.product).mT.contiguous()  # [3, old, new]
        arguments = (d_out, keep, start, out, transposed, gates, d_gates, num_steps, num_envs)
        self.launch(f"gru_backward_{size}", _grid(size, num_envs), 3 * _input_bytes(size) + _SUMS, *arguments)
        return d_gates


def _grid(size: int, num_envs: int) -> tuple[int, int]:
    return size // UNITS, -(-num_envs // ENVS)


def _input_bytes(size: int) -> int:
    """Return the bytes of two copies of one vector of all units, and of the two barriers."""
    return 16 + 2 * ENVS * (size // 2 + 4) * 4
