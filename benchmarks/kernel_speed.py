"""Our kernels against the library's, on a GPU: errors beside float32, and microseconds at the paper's sizes.

    python benchmarks/kernel_speed.py [--search]

`--search` times each kernel over block sizes and warps; the defaults in `expgen/fast/kernels` are the best on an H200.
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch
import triton
from torch import Tensor, nn

from expgen.envs.vec_env import EnvSpec
from expgen.fast.kernels.conv3x3 import conv3x3, weight_gradient
from expgen.fast.kernels.gru import FusedGru
from expgen.fast.kernels.impala_encoder import FusedImpala
from expgen.fast.kernels.pool import max_pool, max_pool_gradient
from expgen.fast.kernels.stem import stem, stem_weight_gradient
from expgen.networks.actor_critic import NetworkConfig, make_policy
from expgen.networks.impala import ImpalaEncoder
from expgen.networks.memory import Memory

BATCH = 2048
SHAPES = ((32, 16, 16), (32, 16, 32), (32, 32, 16), (16, 32, 32), (8, 32, 32))  # side, channels in, out
CONV_OPTIONS = [(64, 4), (128, 4), (128, 8), (256, 8)]  # block, warps
# parts, block, warps, stages
SUM_OPTIONS = [(264, 64, 2, 3), (528, 64, 2, 3), (528, 64, 4, 3), (528, 128, 4, 2), (1056, 32, 2, 3)]
STEM_SUM_OPTIONS = [(264, 64, 4, 1), (528, 64, 4, 1), (528, 64, 4, 2), (528, 128, 4, 2), (1056, 64, 4, 1)]


def microseconds(work: Callable[..., Any], *arguments: Any, **named: Any) -> int:
    """The median of some 40 ms of calls."""
    call = lambda: work(*arguments, **named)  # noqa: E731
    return round(1000 * triton.testing.do_bench(call, warmup=10, rep=40, return_mode="median"))


def encoder() -> ImpalaEncoder:
    spec = EnvSpec("maze", (64, 64, 3), "uint8", 15)
    policy = make_policy(spec, NetworkConfig(), torch.Generator().manual_seed(0), torch.device("cuda"))
    for conv in policy.modules():
        if isinstance(conv, nn.Conv2d):
            conv.bias.data.normal_(0, 0.1)
    return policy.encoder


def pictures(batch: int) -> Tensor:
    return torch.randint(0, 256, (batch, 64, 64, 3), dtype=torch.uint8, device="cuda")


def noise(*shape: int) -> Tensor:
    return torch.randn(*shape, device="cuda").bfloat16()


def distance(a: Tensor, b: Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


def forward(encode: Callable[[Tensor], Tensor], obs: Tensor) -> None:
    with torch.no_grad():
        encode(obs)


def forward_and_back(encode: Callable[..., Tensor], *inputs: Tensor) -> None:
    encode(*inputs).square().sum().backward()


def compare_encoders() -> None:
    """Output and gradients of the whole encoder, ours and the library's bf16, beside float32; then their times."""
    module, obs, weight = encoder(), pictures(256), torch.randn(256, 256, device="cuda")

    def run(encode: Callable[[Tensor], Tensor], is_bfloat16: bool = False) -> tuple[Tensor, ...]:
        module.is_bfloat16 = is_bfloat16
        out = encode(obs)
        return out.detach(), *torch.autograd.grad((out * weight).sum(), list(module.parameters()))

    torch.backends.cudnn.allow_tf32 = False
    exact = run(module.forward)
    for name, found in {"library": run(module.forward, True), "ours": run(FusedImpala(module))}.items():
        off, *gradients = (distance(a, b) for a, b in zip(found, exact, strict=True))
        print(f"{name}: output off by {off:.4f} of its norm, the worst gradient by {max(gradients):.4f}")
    compiled = torch.compile(module.forward, dynamic=False)
    for batch in (32, BATCH):
        obs = pictures(batch)
        for name, encode in {"ours": FusedImpala(module), "compiled": compiled}.items():
            module.is_bfloat16 = name == "compiled"
            there, both = microseconds(forward, encode, obs), microseconds(forward_and_back, encode, obs)
            print(f"encoder, batch {batch}, {name}: forward {there} µs, with backward {both} µs", flush=True)


def compare_memories() -> None:
    memory = Memory(256, 256).cuda()
    memory.initialise(torch.Generator("cuda").manual_seed(0))
    x = torch.randn(512, 4, 256, device="cuda", requires_grad=True)
    inputs = x, torch.rand(512, 4, device="cuda") < 1 / 200, torch.randn(4, 256, device="cuda")
    found = []
    for name, run in {"library": memory.in_pieces, "ours": FusedGru(memory.gru)}.items():
        out = run(*inputs)
        found.append((out.detach(), *torch.autograd.grad(out.square().sum(), [x, *memory.parameters()])))
        print(f"gru, {name}: forward {microseconds(run, *inputs)} µs,", end=" ")
        print(f"with backward {microseconds(forward_and_back, run, *inputs)} µs", flush=True)
    print("gru: output and gradients off by", [round(distance(a, b), 4) for a, b in zip(*found, strict=True)])


def search() -> None:
    """Each kernel over block sizes, warps and parts."""
    for side, ci, co in SHAPES:
        x, dy, weight = noise(BATCH, side, side, ci), noise(BATCH, side, side, co), noise(9 * ci * co)
        bias, skip = torch.randn(co, device="cuda"), dy if ci == co else None
        times = {
            (block, warps): microseconds(conv3x3, x, weight, co, bias, None, skip, True, block=block, warps=warps)
            for block, warps in CONV_OPTIONS
        }
        print(f"convolution {side} {ci}->{co}:", times, flush=True)
        times = {option: microseconds(weight_gradient, x, dy, True, *option) for option in SUM_OPTIONS}
        print(f"weight gradient {side} {ci}->{co}:", times, flush=True)
    obs, expanded, bias = pictures(BATCH), noise(3 * 64 * 16), torch.randn(16, device="cuda")
    options = [(64, 2), (64, 4), (128, 4), (128, 8)]
    print("stem:", {option: microseconds(stem, obs, expanded, bias, 16, *option) for option in options}, flush=True)
    y, winner = stem(obs, expanded, bias, 16)
    times = {option: microseconds(stem_weight_gradient, obs, y, winner, *option) for option in STEM_SUM_OPTIONS}
    print("stem's weight gradient:", times, flush=True)
    for side in (32, 16):
        x = noise(BATCH, side, side, 32)
        print(f"pool {side}:", {block: microseconds(max_pool, x, block) for block in (32, 64, 128)})
        y, winner = max_pool(x)
        times = {block: microseconds(max_pool_gradient, y, winner, block) for block in (32, 64, 128)}
        print(f"pool's gradient {side}:", times, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--search", action="store_true")
    arguments = parser.parse_args()
    compare_encoders()
    compare_memories()
    if arguments.search:
        search()
