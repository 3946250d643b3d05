"""A GRU over whole rollouts in one launch, restarting wherever an episode starts, forward and backward.

    r = σ(a_r + b_r)   z = σ(a_z + b_z)   n = tanh(a_n + r b_n)   h_t = (1 − z) n + z h,   b = W_h h + bias

with h = h_{t−1}, or 0 if step t starts an episode, and a = W_x x + bias, computed for all steps before. The steps are
sequential, and each is too small for a launch of its own. `cluster_gru` has the kernels for GPUs of compute capability
9.0 or higher, `triton_gru` for others. Matrices are multiplied in bfloat16; sums and memory are float32.
"""

import importlib.util
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from expgen.fast.kernels.prepared import Prepared

GATES = 4  # vectors stored per step: r, z, n and b_n


class GruKernels(Protocol):
    """Kernels on `a` `[T, N, 3S]`, `keep` `[T, N]` (0 where an episode starts), `start` `[N, S]`, `weight` `[3, S, S]`.

    `weight` maps old to new memory: its axes are gate, new, old.
    """

    product: torch.dtype  # in which matrices are multiplied

    def prepare(self, weight: Tensor) -> Tensor:
        """Return `weight` in the form that `forward` reads."""

    def forward(self, a: Tensor, keep: Tensor, start: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Return h_t `[T, N, S]`, and the gates r, z, n and b_n `[T, N, 4, S]`."""

    def backward(
        self, d_out: Tensor, keep: Tensor, start: Tensor, weight: Tensor, out: Tensor, gates: Tensor
    ) -> Tensor:
        """Return dL/da_r, dL/da_z, dL/da_n and dL/db_n `[T, N, 4, S]`, from dL/dh_t and forward's tensors."""


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        a: Tensor,
        keep: Tensor,
        start: Tensor,
        weight: Tensor,
        bias: Tensor,
        prepared: Tensor,
        kernels: GruKernels,
    ) -> Tensor:
        out, gates = kernels.forward(a, keep, start, prepared, bias)
        ctx.save_for_backward(keep, start, weight, out, gates)
        ctx.kernels = kernels
        return out

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        keep, start, weight, out, gates = ctx.saved_tensors
        size, product = start.shape[-1], ctx.kernels.product
        d_gates = ctx.kernels.backward(d_out.contiguous(), keep, start, weight.view(3, size, size), out, gates)
        before = torch.cat([start.unsqueeze(0), out[:-1]]) * keep.unsqueeze(-1)  # [T, N, S]
        d_a = d_gates[:, :, :3].flatten(2)  # [T, N, 3S]
        d_b = torch.cat([d_gates[:, :, :2], d_gates[:, :, 3:]], 2).flatten(0, 1).flatten(1)  # [T·N, 3S]
        d_weight = d_b.to(product).T @ before.flatten(0, 1).to(product)
        return d_a, None, None, d_weight.to(weight.dtype), d_b.sum(0), None, None


class FusedGru:
    """A GRU with the weights of `gru`: `x` `[T, N, F]`, `first` `[T, N]`, `state` `[N, S]` → output `[T, N, S]`."""

    def __init__(self, gru: nn.GRU, kernels: GruKernels) -> None:
        self.weights = list(gru.parameters())  # W_x, W_h and their biases
        self.kernels = kernels
        self.weight_x, self.weight_h = Prepared(self._weight_x), Prepared(self._weight_h)
        self.prepared = (self.weight_x, self.weight_h)

    def __call__(self, x: Tensor, first: Tensor, state: Tensor) -> Tensor:
        _, weight_h, bias_x, bias_h = self.weights
        a = F.linear(x.to(self.kernels.product), self.weight_x()).float() + bias_x
        keep = (~first).to(state.dtype)
        return _Scan.apply(a, keep, state.contiguous(), weight_h, bias_h, self.weight_h(), self.kernels)

    def _weight_x(self) -> Tensor:
        return self.weights[0].to(self.kernels.product)

    def _weight_h(self) -> Tensor:
        weight = self.weights[1].detach()
        return self.kernels.prepare(weight.view(3, -1, weight.shape[1]))


def fused_gru(gru: nn.GRU) -> FusedGru | None:
    """Return the GRU with the fastest kernels for its device and size; None if no kernels support it."""
    from expgen.fast.kernels.cluster_gru import SIZES, ClusterGru, has_clusters

    size, device = gru.hidden_size, next(gru.parameters()).device
    if gru.num_layers > 1:
        return None
    if size in SIZES and has_clusters(device):
        return FusedGru(gru, ClusterGru.on(device))
    if importlib.util.find_spec("triton") is not None:
        from expgen.fast.kernels.triton_gru import COLUMNS, TritonGru

        if size % COLUMNS == 0 and size & (size - 1) == 0:
            return FusedGru(gru, TritonGru())
    return None
