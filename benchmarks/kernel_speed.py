"""Our kernels against the library's, on a GPU: errors beside float32, and microseconds at the paper's sizes.

    python benchmarks/kernel_speed.py [--search]

`--search` times each kernel over block sizes and warps; the defaults in `expgen/kernels` are what it found on an H200.
"""

import argparse

import torch
import triton
from torch import nn

from expgen.envs.vec_env import EnvSpec
from expgen.kernels.conv3x3 import conv3x3, weight_gradient
from expgen.kernels.gru import FusedGru
from expgen.kernels.impala_encoder import FusedImpala
from expgen.kernels.pool import max_pool, max_pool_gradient
from expgen.kernels.stem import stem, stem_weight_gradient
from expgen.networks.actor_critic import NetworkConfig, make_policy
from expgen.networks.impala import ImpalaEncoder
from expgen.networks.memory import Memory

BATCH = 2048
SHAPES = ((32, 16, 16), (32, 16, 32), (32, 32, 16), (16, 32, 32), (8, 32, 32))  # side, channels in, out


def microseconds(work) -> float:
    return 1000 * triton.testing.do_bench(work, warmup=10, rep=40, return_mode="median")


def encoder() -> ImpalaEncoder:
    spec = EnvSpec("maze", (64, 64, 3), "uint8", 15)
    policy = make_policy(spec, NetworkConfig(), torch.Generator().manual_seed(0), torch.device("cuda"))
    for conv in policy.modules():
        if isinstance(conv, nn.Conv2d):
            conv.bias.data.normal_(0, 0.1)
    return policy.encoder


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


def compare() -> None:
    """Output and gradients of the whole encoder, ours and the library's bf16, beside float32."""
    module = encoder()
    obs = torch.randint(0, 256, (256, 64, 64, 3), dtype=torch.uint8, device="cuda")
    weight = torch.randn(256, 256, device="cuda")

    def run(encode, is_bfloat16=False):
        module.is_bfloat16 = is_bfloat16
        out = encode(obs)
        return out.detach(), torch.autograd.grad((out * weight).sum(), list(module.parameters()))

    torch.backends.cudnn.allow_tf32 = False
    exact, exact_grads = run(module.forward)
    for name, (out, grads) in {"library": run(module.forward, True), "ours": run(FusedImpala(module))}.items():
        worst = max(relative(g, e) for g, e in zip(grads, exact_grads, strict=True))
        print(f"{name}: output off by {relative(out, exact):.4f} of its norm, the worst gradient by {worst:.4f}")


def time_encoders() -> None:
    module = encoder()
    fused, compiled = FusedImpala(module), torch.compile(module.forward, dynamic=False)
    for batch in (32, BATCH):
        obs = torch.randint(0, 256, (batch, 64, 64, 3), dtype=torch.uint8, device="cuda")
        for name, encode in {"ours": fused, "compiled": compiled}.items():
            module.is_bfloat16 = name == "compiled"

            def both():
                module.zero_grad()
                encode(obs).square().sum().backward()

            def forward():
                with torch.no_grad():
                    encode(obs)

            print(f"batch {batch} {name}: forward {microseconds(forward):.0f} µs, with backward {microseconds(both):.0f} µs")


def time_memory() -> None:
    memory = Memory(256, 256).cuda()
    memory.initialise(torch.Generator("cuda").manual_seed(0))
    x = torch.randn(512, 4, 256, device="cuda", requires_grad=True)
    first = torch.rand(512, 4, device="cuda") < 1 / 200
    state = torch.randn(4, 256, device="cuda")
    outs = {}
    for name, run in {"ours": FusedGru(memory.gru), "pieces": memory.in_pieces}.items():
        out = run(x, first, state)
        outs[name] = out, torch.autograd.grad(out.square().sum(), [x, *memory.parameters()])
        print(f"gru {name}: forward {microseconds(lambda: run(x, first, state)):.0f} µs,",
              f"with backward {microseconds(lambda: run(x, first, state).sum().backward()):.0f} µs")
    a, b = outs["ours"], outs["pieces"]
    print("gru: off by", relative(a[0], b[0]), "gradients", [round(relative(g, e), 4) for g, e in zip(a[1], b[1])])


def search(only: int | None = None) -> None:
    """Each kernel over block sizes, warps and parts."""
    for side, ci, co in SHAPES if only is None else SHAPES[only : only + 1]:
        x = torch.randn(BATCH, side, side, ci, device="cuda").bfloat16()
        dy = torch.randn(BATCH, side, side, co, device="cuda").bfloat16()
        w = torch.randn(12 * ci * co, device="cuda").bfloat16()
        b = torch.randn(co, device="cuda")
        skip = dy if ci == co else None
        times = {
            (block, warps): microseconds(lambda: conv3x3(x, w, co, b, skip=skip, relu_in=True, block=block, warps=warps))
            for block, warps in ((64, 4), (128, 4), (128, 8), (256, 8))
        }
        print(f"conv {side} {ci}->{co}:", {key: round(t) for key, t in times.items()}, flush=True)
        options = [(264, 64, 4, 3), (528, 64, 4, 3), (1056, 64, 4, 2), (528, 128, 4, 2), (528, 128, 8, 3), (528, 64, 4, 2)]
        times = {option: microseconds(lambda: weight_gradient(x, dy, True, *option)) for option in options}
        print(f"weights {side} {ci}->{co}:", {key: round(t) for key, t in times.items()}, flush=True)
    if only is not None and only < len(SHAPES):
        return
    obs = torch.randint(0, 256, (BATCH, 64, 64, 3), dtype=torch.uint8, device="cuda")
    w, b = torch.randn(3 * 64 * 16, device="cuda").bfloat16(), torch.randn(16, device="cuda")
    times = {k: microseconds(lambda: stem(obs, w, b, 16, *k)) for k in ((32, 4), (64, 4), (128, 4), (128, 8))}
    print("stem:", {key: round(t) for key, t in times.items()}, flush=True)
    y, winner = stem(obs, w, b, 16)
    options = [(264, 64, 4, 2), (528, 64, 4, 2), (528, 128, 4, 2), (528, 64, 4, 1), (1056, 64, 4, 2)]
    times = {option: microseconds(lambda: stem_weight_gradient(obs, y, winner, *option)) for option in options}
    print("stem weights:", {key: round(t) for key, t in times.items()}, flush=True)
    for side in (32, 16):
        x = torch.randn(BATCH, side, side, 32, device="cuda").bfloat16()
        print("pool", side, {n: round(microseconds(lambda: max_pool(x, n))) for n in (32, 64, 128, 256)})
        y, winner = max_pool(x)
        print("unpool", side, {n: round(microseconds(lambda: max_pool_gradient(y, winner, n))) for n in (32, 64, 128, 256)})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--only", type=int, help="search one family alone, to fill the compiler's cache in parallel")
    arguments = parser.parse_args()
    if arguments.only is not None:
        search(arguments.only)
        raise SystemExit
    compare()
    time_memory()
    time_encoders()
    if arguments.search:
        search()
