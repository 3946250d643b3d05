"""Steps per second of minimaze on one core with random actions: `python benchmarks/minimaze_speed.py`."""

import argparse
import time

import numpy as np

from expgen.envs.levels import LevelSet
from expgen.envs.minimaze import ACTIONS, Minimaze, MinimazeConfig


def steps_per_second(levels: str, num_envs: int, seconds: float, max_cells: int) -> float:
    """Return the speed of the environment alone: actions are drawn before, observations are not copied."""
    env = Minimaze(LevelSet.parse(levels), num_envs, seed=0, config=MinimazeConfig(max_cells=max_cells))
    action = np.random.default_rng(0).integers(len(ACTIONS), size=(1024, num_envs), dtype=np.int32)
    env.observe()
    rounds, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for row in action:
            env.act(row)
            env.observe()
        rounds += 1
    return rounds * action.size / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--max-cells", type=int, default=MinimazeConfig().max_cells)
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds to measure each level set")
    args = parser.parse_args()
    for levels in ("200", "all"):
        speed = steps_per_second(levels, args.num_envs, args.seconds, args.max_cells)
        print(f"minimaze, levels {levels}, {args.num_envs} envs: {speed:,.0f} steps/s")


if __name__ == "__main__":
    main()
