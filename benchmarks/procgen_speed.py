"""Overhead of our ProcGen binding: its steps per second compared with direct calls of the C library.

Both step the same games with the same actions, alternating in short turns, so that other processes slow both equally.
The ratio is the median over the turns; the exit status is 1 if it is above 1.03.

    python benchmarks/procgen_speed.py --game maze --envs 64 --threads 1
"""

import argparse
import sys
import time

import numpy as np

from expgen.envs.levels import LevelSet
from expgen.envs.libenv import LibEnv
from expgen.envs.procgen import GAMES, ProcgenConfig, make_procgen
from expgen.envs.vec_env import VecEnv

ACCEPTED_RATIO = 1.03


def time_bare(games: LibEnv, action: np.ndarray) -> float:
    """Return the seconds for one step per row of `action` by direct C calls."""
    library, handle, buffer = games.library, games.handle, games.action["action"]
    start = time.perf_counter()
    for row in action:
        buffer[:] = row
        library.libenv_act(handle)
        library.libenv_observe(handle)
    return time.perf_counter() - start


def time_ours(env: VecEnv, action: np.ndarray) -> float:
    """Return the seconds for the same steps through the VecEnv protocol."""
    start = time.perf_counter()
    for row in action:
        env.act(row)
        env.observe()
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", choices=GAMES, default="maze")
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1, help="C threads of each; 0 steps inside act")
    parser.add_argument("--turns", type=int, default=60, help="number of turns to measure")
    parser.add_argument("--steps", type=int, default=25, help="vector steps per turn")
    args = parser.parse_args()

    config = ProcgenConfig(args.game)
    levels = {"start_level": 0, "num_levels": 200, "rand_seed": 0, "num_threads": args.threads}
    bare = LibEnv(args.envs, {**config.options(), **levels})
    ours = make_procgen(config, LevelSet(range(200)), args.envs, 0, args.threads, full_view=False)
    rng = np.random.default_rng(0)
    turns = np.empty((args.turns + 1, 2))  # the first turn is a warm-up
    for number, turn in enumerate(turns):
        action = rng.integers(15, size=(args.steps, args.envs), dtype=np.int32)  # [steps, N]
        if number % 2:  # alternate which goes first
            turn[1], turn[0] = time_ours(ours, action), time_bare(bare, action)
        else:
            turn[0], turn[1] = time_bare(bare, action), time_ours(ours, action)
    assert np.array_equal(bare.obs["rgb"], ours.observe().obs), "the two did not play the same games"

    ratio = float(np.median(turns[1:, 1] / turns[1:, 0]))
    rates = args.steps * args.envs / np.median(turns[1:], axis=0)
    print(f"{args.game}, {args.envs} envs, {args.threads} threads: bare {rates[0]:,.0f} steps/s, ours {rates[1]:,.0f}")
    print(f"time ratio ours / bare: {ratio:.3f} (accepted: up to {ACCEPTED_RATIO})")
    return int(ratio > ACCEPTED_RATIO)


if __name__ == "__main__":
    sys.exit(main())
