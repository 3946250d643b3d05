"""Time the GPU kernels at the paper's sizes, and the parts of a gradient step.

    python benchmarks/kernel_speed.py [update] [rest] [kernels] [--out FOLDER]

Needs no environment. Prints tables and writes them to FOLDER as JSON. tests/fast/kernels checks correctness.
"""

import argparse
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from expgen.algorithms.ppo import PPO, PPOConfig
from expgen.envs.vec_env import EnvSpec
from expgen.fast.accelerate import accelerate
from expgen.fast.fast_networks import recorded_forward
from expgen.fast.graphs import capture_on_gpu
from expgen.fast.kernels import impala_kernels
from expgen.fast.kernels.cuda_module import cuda_module
from expgen.fast.kernels.gru import fused_gru
from expgen.fast.kernels.impala_kernels import ImpalaKernels
from expgen.fast.kernels.impala_weights import Packed, WeightPacking
from expgen.networks.actor_critic import NetworkConfig, Policy, make_policy
from expgen.networks.memory import Memory
from expgen.reward.knn import KnnConfig, KnnReward
from expgen.rollout.rollout import Rollout

BATCH = 2048
SPEC = EnvSpec("maze", (64, 64, 3), "uint8", 15)
DEVICE = torch.device("cuda", 0)
BLOCKS = ((32, 16), (16, 32), (8, 32))  # side, channels
POOLED = ((32, 16), (16, 32))  # side, channels in
BYTES_PER_S = 4.3e12  # of a copy on an H200
REPEATS = 10  # launches in a timed graph


def microseconds(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Return the median time of a call over five replays of a graph of `repeats` calls."""

    def body() -> None:
        for _ in range(repeats):
            work()

    with torch.cuda.stream(torch.cuda.Stream()):
        _, replay = capture_on_gpu(body)
        return wall_microseconds(replay) / repeats


def wall_microseconds(work: Callable[[], Any], rounds: int = 5) -> float:
    """Return the median time of `rounds` calls, measured by CUDA events."""
    spent = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        spent.append(1000 * begin.elapsed_time(end))
    return statistics.median(spent)


def noise(*shape: int) -> Tensor:
    return torch.randn(*shape, device=DEVICE).bfloat16()


def images(*shape: int) -> Tensor:
    """Return images of 4 × 4 pixel blocks in a few colours, similar to games."""
    coarse = torch.randint(0, 4, (*shape, 16, 16, 3), device=DEVICE, dtype=torch.uint8) * 80
    return coarse.repeat_interleave(4, -3).repeat_interleave(4, -2).contiguous()


def convolutions(*sizes: tuple[int, int]) -> tuple[list[nn.Conv2d], tuple[Packed, ...]]:
    """Return convolutions with bfloat16 weights; the first is packed as a stage's pooled convolution."""
    convs = [nn.Conv2d(inputs, outputs, 3, padding=1).to(DEVICE) for inputs, outputs in sizes]
    for conv in convs:
        conv.weight.data = conv.weight.data.bfloat16().float()
    return convs, WeightPacking(convs)()


def kernel_calls(kernels: ImpalaKernels) -> dict[str, tuple[Callable[[], Any], float]]:
    """Return a call of each kernel at the paper's minibatch size, and the megabytes that it must move."""
    calls: dict[str, tuple[Callable[[], Any], float]] = {}
    parts = impala_kernels.PARTS
    obs, (_, (packed,)) = images(BATCH), convolutions((3, 16))
    y, winner = kernels.stem(obs, packed, keep=True)
    map_bytes = y.nbytes / 1e6
    calls["stem_forward"] = lambda: kernels.stem(obs, packed, True), obs.nbytes / 1e6 + 1.5 * map_bytes
    dy = noise(*y.shape)
    calls["stem_weight_gradient"] = (
        lambda dy=dy, winner=winner: kernels.stem_weight_gradient(obs, dy, winner),
        obs.nbytes / 1e6 + 1.5 * map_bytes,
    )
    for side, channels in BLOCKS:
        _, (_, one, two) = convolutions(*[(channels, channels)] * 3)
        x, dy, dh, hidden = (noise(BATCH, side, side, channels) for _ in range(4))
        hidden = hidden.relu()
        partial = torch.empty(parts, 97000, device=DEVICE)
        size = x.nbytes / 1e6
        calls[f"block_forward_{side}"] = lambda x=x, one=one, two=two: kernels.block(x, one, two, True), 3 * size
        calls[f"block_backward_{side}"] = (
            lambda dy=dy, x=x, hidden=hidden, one=one, two=two: kernels.block_gradient(dy, x, hidden, one, two),
            5 * size,
        )
        calls[f"block_weight_gradient_{side}"] = (
            lambda x=x, dh=dh, h=hidden, dy=dy, partial=partial: kernels.block_weight_gradient(x, dh, h, dy, partial),
            4 * size,
        )
    for side, inputs in POOLED:
        _, (packed,) = convolutions((inputs, 32))
        x = noise(BATCH, side, side, inputs)
        y, winner = kernels.pooled(x, packed, keep=True)
        dy, partial = noise(*y.shape), torch.empty(parts, 97000, device=DEVICE)
        size = (x.nbytes + 1.5 * y.nbytes) / 1e6
        calls[f"pooled_forward_{side}"] = lambda x=x, packed=packed: kernels.pooled(x, packed, True), size
        calls[f"pooled_backward_{side}"] = (
            lambda dy=dy, winner=winner, packed=packed: kernels.pooled_gradient(dy, winner, packed),
            size,
        )
        calls[f"pooled_weight_gradient_{side}"] = (
            lambda x=x, dy=dy, w=winner, partial=partial: kernels.pooled_weight_gradient(x, dy, w, partial),
            size,
        )
    return calls


def time_kernels() -> dict[str, dict[str, float]]:
    """Return microseconds of each kernel, and the least that its memory traffic takes."""
    calls = kernel_calls(ImpalaKernels(cuda_module(DEVICE))).items()
    return {
        name: {"µs": microseconds(call), "bytes": 1e12 * megabytes / BYTES_PER_S} for name, (call, megabytes) in calls
    }


def new_policy(network: NetworkConfig) -> Policy:
    policy = make_policy(SPEC, network, torch.Generator().manual_seed(0), DEVICE)
    for conv in policy.modules():
        if isinstance(conv, nn.Conv2d):
            conv.bias.data.normal_(0, 0.1)
    return policy


def filled_rollout(policy: Policy) -> Rollout:
    """Return a rollout of 512 steps of 32 environments with random content."""
    rollout = Rollout(SPEC, 512, 32, policy.state_size, DEVICE)
    rollout.obs.copy_(images(513, 32))
    rollout.action.random_(0, SPEC.num_actions)
    rollout.log_prob.fill_(-2.7)
    for tensor in (rollout.value, rollout.advantage, rollout.value_target):
        tensor.normal_()
    rollout.first.bernoulli_(1 / 200)
    return rollout


def time_update(network: NetworkConfig) -> tuple[dict[str, float], dict[str, float]]:
    """Return figures of one learner's update as in training, and the time of a gradient step by kernel."""
    policy = new_policy(network)
    rollout = filled_rollout(policy)
    algorithm, lane = accelerate(PPO(policy, PPOConfig()), rollout)
    generator = torch.Generator(DEVICE).manual_seed(0)

    def update() -> None:
        with lane.updating():
            for _ in algorithm.update(rollout, generator):
                pass

    began = time.perf_counter()
    update()
    torch.cuda.synchronize()
    first = time.perf_counter() - began
    spent = []
    for _ in range(4):
        began = time.perf_counter()
        update()
        torch.cuda.synchronize()
        spent.append(time.perf_counter() - began)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        update()
        torch.cuda.synchronize()
    steps = 3 * 8
    shares: Counter[str] = Counter()
    count = 0
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            shares[event.name.split("(")[0].replace("void ", "")[:90]] += event.time_range.elapsed_us() / steps
            count += 1
    lane.close()
    fastest = min(spent)
    figures = {
        "steps/s": 512 * 32 / fastest,
        "ms per minibatch": 1000 * fastest / steps,
        "first update, s": first,
        "launches per minibatch": count / steps,
        "ms per minibatch in kernels": sum(shares.values()) / 1000,
    }
    return figures, dict(shares.most_common(45))


def time_rest() -> dict[str, float]:
    """Time forward passes as in acting, the explorer's GRU and reward, and gathering a minibatch's images."""
    figures: dict[str, float] = {}
    for batch in (32, 320, 4096):
        policy = new_policy(NetworkConfig()).eval()
        inputs = (
            images(1, batch),
            torch.zeros(1, batch, dtype=torch.bool, device=DEVICE),
            torch.zeros(batch, 0, device=DEVICE),
        )
        with torch.cuda.stream(torch.cuda.Stream()):
            figures[f"forward of {batch}"] = wall_microseconds(recorded_forward(policy, inputs), 20)
    memory = Memory(256, 256).to(DEVICE)
    memory.initialise(torch.Generator(DEVICE).manual_seed(0))
    scan = fused_gru(memory.gru)
    assert scan is not None
    inputs = (
        torch.randn(512, 4, 256, device=DEVICE, requires_grad=True),
        torch.rand(512, 4, device=DEVICE) < 1 / 200,
        torch.randn(4, 256, device=DEVICE),
    )
    figures["gru forward"] = wall_microseconds(lambda: scan(*inputs))
    figures["gru with backward"] = wall_microseconds(lambda: scan(*inputs).square().sum().backward())
    reward, full = KnnReward(KnnConfig(), 32), images(513, 32)
    first = torch.rand(513, 32, device=DEVICE) < 1 / 200
    figures["k-NN reward of a rollout"] = wall_microseconds(lambda: reward.measure(full, first))
    column = torch.randperm(32, device=DEVICE)[:4]
    words = full[:512].flatten(2).view(torch.int64)
    figures["gather, bytes"] = wall_microseconds(lambda: full[:512].index_select(1, column))
    figures["gather, words"] = wall_microseconds(lambda: words.index_select(1, column))
    return figures


def time_updates() -> dict[str, dict[str, float]]:
    """Time updates of a learner without memory and of one with a GRU."""
    tables = {}
    for name, network in {"ppo": NetworkConfig(), "ppo-gru": NetworkConfig(memory="gru")}.items():
        tables[f"update of {name}"], tables[f"gradient step of {name}, µs by kernel"] = time_update(network)
    return tables


def show(table: dict[str, Any]) -> None:
    """Print a table: a number per row, or a dictionary of columns per row."""
    if not isinstance(next(iter(table.values())), dict):
        table = {name: {"": figure} for name, figure in table.items()}
    columns = list(dict.fromkeys(column for row in table.values() for column in row))
    print(" | ".join(columns))
    for name, row in table.items():
        print(
            f"  {name:90.90}", " ".join(f"{row[column]:10.4g}" if column in row else f"{'–':>10}" for column in columns)
        )


SECTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "update": time_updates,
    "rest": lambda: {"rest, µs": time_rest()},
    "kernels": lambda: {"kernels, µs": time_kernels()},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=", ".join(SECTIONS))
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the JSON files")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.backends.cudnn.allow_tf32 = False
    for name in arguments.sections or SECTIONS:
        began = time.perf_counter()
        tables = SECTIONS[name]()
        for title, table in tables.items():
            print(f"\n{title}", end="  ")
            show(table)
        seconds = time.perf_counter() - began
        print(f"{name}: {seconds:.0f} s on {torch.cuda.get_device_name(DEVICE)}, torch {torch.__version__}", flush=True)
        (arguments.out / f"{name}.json").write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
