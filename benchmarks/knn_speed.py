"""Time the intrinsic reward at the paper's sizes, as a share of a rollout's time and compared with torch.cdist.

The frames are those of random agents in minimaze at 64 x 64 pixels, so that episodes end and frames repeat as in real
training. The baseline is torch.cdist without matrix products, for one environment at a time, which is exact too. The
time of a rollout and its update is measured with a learner unless `--rollout-seconds` is given. With `l2`, the exit
status is 1 if the share is above 5 %. `--step` measures single steps of one environment on one core instead, with 500
earlier frames; then the exit status is 1 if a step takes a millisecond or more.

    python benchmarks/knn_speed.py --device cpu --rollout-seconds 100
    python benchmarks/knn_speed.py --step
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from expgen.envs.make import make_env
from expgen.reward.knn import KnnConfig, KnnReward
from expgen.reward.knn_step import KnnStepReward
from expgen.reward.pooling import pooled
from expgen.rollout.rollout import Rollout
from expgen.runs.make_config import make_config
from expgen.runs.plan import build_learner, plans_of
from expgen.training.resources import Resources, plan_resources

ACCEPTED_SHARE = 0.05
ACCEPTED_STEP = 1e-3  # seconds


def played_rollout(num_steps: int, num_envs: int, device: torch.device) -> Rollout:
    """Return a rollout of random agents in mazes of 64 × 64 pixels (63 of maze, the last row and column black)."""
    env = make_env("minimaze", 200, num_envs, 0, min_cells=31, max_cells=31, time_limit=500)
    spec = env.spec.__class__("minimaze", (64, 64, 3), "uint8", env.spec.num_actions)
    rollout = Rollout(spec, num_steps, num_envs, 0, device)
    rng = np.random.default_rng(0)
    for t in range(num_steps + 1):
        seen = env.observe()
        frame = np.zeros((num_envs, 64, 64, 3), dtype=np.uint8)
        frame[:, :63, :63] = seen.obs
        rollout.record(t, seen._replace(obs=frame, full=frame))
        env.act(rng.integers(env.spec.num_actions, size=num_envs, dtype=np.int32))
    rollout.finish()
    return rollout


def plain_distances(rollout: Rollout, config: KnnConfig) -> None:
    """Compute every distance between one rollout and a full memory by subtraction, and no other part of the reward."""
    cell, white = pooled(rollout.full, config.pool)
    frame = torch.cat([cell[-config.memory_length : -1], cell]).flatten(2).float() / white  # [B-1+T+1, N, D]
    norm = 2.0 if config.distance == "l2" else 0.0
    for env in range(frame.shape[1]):
        query, key = frame[-rollout.num_steps :, env], frame[:-1, env]
        torch.cdist(query, key, p=norm, compute_mode="donot_use_mm_for_euclid_dist").topk(2, largest=False)


def seconds(work: Callable[[], object], device: torch.device, times: int) -> float:
    """Return the median time of `times` calls after a warm-up call."""
    taken = []
    for _ in range(times + 1):
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def rollout_seconds(env: str, num_steps: int, num_envs: int, resources: Resources) -> float:
    """Return the seconds of one rollout and update of the explorer; on a GPU the first, which compiles, is skipped."""
    config = make_config(env, "maxent", "paper", rollout_steps=num_steps, envs=num_envs, eval_every=0)
    learner = build_learner(config, plans_of(config)[0], resources)
    for _ in range(2 if resources.device.type == "cuda" else 1):
        start = time.perf_counter()
        for _ in learner.iterate():
            pass
        taken = time.perf_counter() - start
    learner.close()
    return taken


def step_seconds(config: KnnConfig, times: int) -> tuple[float, float]:
    """Return the seconds of one step with a full memory, by `KnnStepReward` and by a one-step rollout."""
    torch.set_num_threads(1)
    rollout = played_rollout(config.memory_length + times, 1, torch.device("cpu"))
    frame, one = rollout.full.numpy(), torch.zeros(2, 1, dtype=torch.bool)
    stepwise, source, taken = KnnStepReward(config), KnnReward(config, 1), []
    source.measure(rollout.full[: config.memory_length], one[0].expand(config.memory_length, 1))
    for t in range(len(frame)):
        began = time.perf_counter()
        stepwise(frame[t], np.array([t == 0]))
        taken.append(time.perf_counter() - began)
    slow = seconds(lambda: source.measure(rollout.full[-2:], one), torch.device("cpu"), 20)
    return statistics.median(taken[config.memory_length :]), slow


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--envs", type=int, default=32)
    parser.add_argument("--rollout-steps", type=int, default=512)
    parser.add_argument("--distance", choices=("l2", "l0"), default="l2")
    parser.add_argument("--env", default="procgen:maze", help="environment on which the time of a rollout is measured")
    parser.add_argument("--rollout-seconds", type=float, help="time of a rollout, instead of measuring it")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--step", action="store_true", help="measure single steps of one environment instead")
    args = parser.parse_args()
    if args.step:
        fast, slow = step_seconds(KnnConfig(distance=args.distance), 200)
        print(f"{args.distance}, one step of one environment, one core: {fast * 1e3:.2f} ms")
        print(f"as a rollout of one step: {slow * 1e3:.2f} ms, {slow / fast:.1f} times as long")
        return int(fast >= ACCEPTED_STEP)

    resources = plan_resources(args.device, 1)
    device = resources.device
    torch.set_num_threads(resources.torch_threads)
    config = KnnConfig(distance=args.distance)
    rollout = played_rollout(args.rollout_steps, args.envs, device)
    source = KnnReward(config, args.envs)
    source(rollout)  # fills the memory; the first rollout is cheaper
    ours = seconds(lambda: source(rollout), device, args.times)
    plain = seconds(lambda: plain_distances(rollout, config), device, 1)
    total = args.rollout_seconds or rollout_seconds(args.env, args.rollout_steps, args.envs, resources)
    print(
        f"{args.distance}, {args.envs} envs x {args.rollout_steps} steps on {device}: {ours * 1e3:,.1f} ms per rollout"
    )
    print(f"plain distances: {plain * 1e3:,.1f} ms, {plain / ours:.1f} times as long")
    print(f"share of a rollout's {total:.2f} s: {ours / total:.2%} (accepted for l2: up to {ACCEPTED_SHARE:.0%})")
    return int(args.distance == "l2" and ours / total > ACCEPTED_SHARE)


if __name__ == "__main__":
    sys.exit(main())
