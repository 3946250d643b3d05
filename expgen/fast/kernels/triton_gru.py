"""GRU kernels in Triton, for GPUs without thread block clusters (gru.py has the equations).

A group of programs processes all T steps of sixteen environments. Each program owns some columns of the memory, loads
its part of W_h once, and after each step waits until the others have stored theirs. A group occupies a few
multiprocessors and leaves the rest to other learners. Matrices are multiplied in bfloat16; sums and memory are float32.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from expgen.fast.kernels.gru import GATES

ROWS = 16  # environments per group of programs: the least that a tensor core multiplies
COLUMNS = 32  # of the memory, per program


@triton.jit
def _wait_for_all(counter, arrivals):
    """Wait until all programs of the group have called this; then their earlier stores are visible."""
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="release")
    while tl.atomic_add(counter, 0, sem="acquire") < arrivals:
        pass
    tl.debug_barrier()


@triton.jit
def _sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def _tanh(x):
    return 2 * _sigmoid(2 * x) - 1


@triton.jit
def _forward(
    a, keep, start, weight, bias, out, gates, counters, num_envs,
    T: tl.constexpr, S: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """`a` `[T, N, 3S]`, `keep` `[T, N]` (0 where an episode starts), `weight` `[3, S, S]` from old to new memory."""
    env = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    valid = (env < num_envs)[:, None]
    units = tl.arange(0, S)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    matrix = weight + units[:, None] * S + column[None, :]
    weight_r, weight_z, weight_n = tl.load(matrix), tl.load(matrix + S * S), tl.load(matrix + 2 * S * S)
    bias_r = tl.load(bias + column)[None, :]
    bias_z = tl.load(bias + S + column)[None, :]
    bias_n = tl.load(bias + 2 * S + column)[None, :]
    own = tl.load(start + env[:, None] * S + column[None, :], mask=valid, other=0.0)
    before = start
    for t in range(T):
        step = t * num_envs + env
        kept = tl.load(keep + step, mask=env < num_envs, other=0.0)[:, None]
        gate_inputs = a + step[:, None] * (3 * S) + column[None, :]
        a_r = tl.load(gate_inputs, mask=valid, other=0.0)
        a_z = tl.load(gate_inputs + S, mask=valid, other=0.0)
        a_n = tl.load(gate_inputs + 2 * S, mask=valid, other=0.0)
        memory = tl.load(before + env[:, None] * S + units[None, :], mask=valid, other=0.0, cache_modifier=".cg")
        memory = (memory * kept).to(weight.dtype.element_ty)  # [ROWS, S]
        r = _sigmoid(a_r + tl.dot(memory, weight_r) + bias_r)
        z = _sigmoid(a_z + tl.dot(memory, weight_z) + bias_z)
        b_n = tl.dot(memory, weight_n) + bias_n
        n = _tanh(a_n + r * b_n)
        own = (1 - z) * n + z * own * kept
        before = out + t * num_envs * S
        tl.store(before + env[:, None] * S + column[None, :], own, mask=valid)
        gate = gates + step[:, None] * (4 * S) + column[None, :]
        tl.store(gate, r, mask=valid)
        tl.store(gate + S, z, mask=valid)
        tl.store(gate + 2 * S, n, mask=valid)
        tl.store(gate + 3 * S, b_n, mask=valid)
        if T > 1:
            _wait_for_all(counters + tl.program_id(1), (t + 1) * (S // COLUMNS))


@triton.jit
def _backward(
    d_out, keep, before, weight, gates, d_gates, counters, num_envs,
    T: tl.constexpr, S: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """`before` `[T, N, S]` is the memory each step started from. Writes dL/da_r, dL/da_z, dL/da_n and dL/db_n."""
    env = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    valid = (env < num_envs)[:, None]
    units = tl.arange(0, S)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    matrix = weight + units[:, None] * S + column[None, :]  # from new to old memory
    weight_r, weight_z, weight_n = tl.load(matrix), tl.load(matrix + S * S), tl.load(matrix + 2 * S * S)
    carry = tl.zeros((ROWS, COLUMNS), tl.float32)  # dL/dh_t from later steps
    for since in range(T):
        step = (T - 1 - since) * num_envs + env
        kept = tl.load(keep + step, mask=env < num_envs, other=0.0)[:, None]
        here, gate = step[:, None] * S + column[None, :], step[:, None] * (4 * S) + column[None, :]
        r = tl.load(gates + gate, mask=valid, other=0.0)
        z = tl.load(gates + gate + S, mask=valid, other=0.0)
        n = tl.load(gates + gate + 2 * S, mask=valid, other=0.0)
        b_n = tl.load(gates + gate + 3 * S, mask=valid, other=0.0)
        old = tl.load(before + here, mask=valid, other=0.0)
        d_h = tl.load(d_out + here, mask=valid, other=0.0) + carry
        d_n = d_h * (1 - z) * (1 - n * n)
        tl.store(d_gates + gate, d_n * b_n * r * (1 - r), mask=valid)
        tl.store(d_gates + gate + S, d_h * (old - n) * z * (1 - z), mask=valid)
        tl.store(d_gates + gate + 2 * S, d_n, mask=valid)
        tl.store(d_gates + gate + 3 * S, d_n * r, mask=valid)
        _wait_for_all(counters + tl.program_id(1), (since + 1) * (S // COLUMNS))
        all_columns = d_gates + step[:, None] * (4 * S) + units[None, :]
        d_r = tl.load(all_columns, mask=valid, other=0.0, cache_modifier=".cg").to(weight.dtype.element_ty)
        d_z = tl.load(all_columns + S, mask=valid, other=0.0, cache_modifier=".cg").to(weight.dtype.element_ty)
        d_b = tl.load(all_columns + 3 * S, mask=valid, other=0.0, cache_modifier=".cg").to(weight.dtype.element_ty)
        carry = tl.dot(d_r, weight_r)
        carry = tl.dot(d_z, weight_z, carry)
        carry = tl.dot(d_b, weight_n, carry)
        carry = (carry + d_h * z) * kept


class TritonGru:
    """`GruKernels` in Triton."""

    def __init__(self, product: torch.dtype = torch.bfloat16) -> None:
        self.product = product

    def prepare(self, weight: Tensor) -> Tensor:
        return weight.mT.to(self.product).contiguous()  # [3, old, new]

    def forward(self, a: Tensor, keep: Tensor, start: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        num_steps, num_envs, _ = a.shape
        size = start.shape[-1]
        out = start.new_empty(num_steps, num_envs, size)
        gates = start.new_empty(num_steps, num_envs, GATES, size)
        grid, counters = _groups(start, size)
        _forward[grid](
            a, keep, start, weight, bias, out, gates, counters, num_envs, num_steps, size, ROWS, size // grid[0],
            num_warps=4,
        )  # fmt: skip
        return out, gates

    def backward(
        self, d_out: Tensor, keep: Tensor, start: Tensor, weight: Tensor, out: Tensor, gates: Tensor
    ) -> Tensor:
        num_steps, num_envs, size = out.shape
        before = torch.cat([start.unsqueeze(0), out[:-1]]) * keep.unsqueeze(-1)  # [T, N, S]
        d_gates = torch.empty_like(gates)
        grid, counters = _groups(start, size)
        _backward[grid](
            d_out, keep, before, weight.to(self.product), gates, d_gates, counters, num_envs, num_steps, size, ROWS,
            size // grid[0], num_warps=4,
        )  # fmt: skip
        return d_gates


def _groups(start: Tensor, size: int) -> tuple[tuple[int, int], Tensor]:
    """Return the grid (programs per group, groups) and a zeroed barrier counter for each group."""
    groups = triton.cdiv(len(start), ROWS)
    together = size // COLUMNS if start.is_cuda else 1  # on the CPU an interpreter runs programs one after another
    return (together, groups), torch.zeros(groups, dtype=torch.int32, device=start.device)
