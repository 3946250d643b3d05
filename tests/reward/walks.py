"""Synthetic frame sequences, their intrinsic reward, and a double loop as reference."""

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from expgen.envs.vec_env import EnvSpec
from expgen.reward.knn import KnnConfig, KnnReward
from expgen.rollout.rollout import Rollout

CPU = torch.device("cpu")
Film = tuple[ndarray, ndarray]  # frames and firsts of one long walk, [time, N, …]; rollouts overlap by one frame


def film(num_frames: int, num_envs: int = 3, shape: tuple[int, ...] = (7, 8, 3), chance: float = 0.08) -> Film:
    """Return frames that sometimes repeat, exactly or nearly, in episodes of random lengths."""
    rng = np.random.default_rng(0)
    few = rng.integers(0, 256, (6, *shape), dtype=np.uint8)
    frames = few[rng.integers(0, 6, (num_frames, num_envs))]
    frames.reshape(num_frames, num_envs, -1)[..., 0] = rng.integers(0, 3, (num_frames, num_envs))
    first = rng.random((num_frames, num_envs)) < chance
    first[0] = True
    return frames, first


def rollouts(walk: Film, num_steps: int, device: torch.device = CPU) -> list[Rollout]:
    frames, first = walk
    made = []
    for begin in range(0, len(frames) - num_steps, num_steps):
        spec = EnvSpec("film", frames.shape[2:], str(frames.dtype), 3)
        rollout = Rollout(spec, num_steps, frames.shape[1], 0, device)
        rollout.full.copy_(torch.from_numpy(frames[begin : begin + num_steps + 1]))
        rollout.host_first.copy_(torch.from_numpy(first[begin : begin + num_steps + 1]))
        rollout.finish()
        made.append(rollout)
    return made


def reward_of(walk: Film, num_steps: int, config: KnnConfig, device: torch.device = CPU) -> Tensor:
    source = KnnReward(config, walk[0].shape[1])
    return torch.cat([source(rollout).cpu() for rollout in rollouts(walk, num_steps, device)])


def oracle(walk: Film, config: KnnConfig) -> ndarray:
    """Compute r_I with two loops over steps and one over earlier frames, on averages as in the paper."""
    frames, first = walk
    p, (height, width) = config.pool, (n // config.pool for n in frames.shape[2:4])
    cut = frames[:, :, : height * p, : width * p].astype(np.float64) / 255
    small = cut.reshape(*frames.shape[:2], height, p, width, p, -1).mean((3, 5))  # [time, N, h, w, C]
    reward = np.zeros((len(frames) - 1, frames.shape[1]))
    for env in range(frames.shape[1]):
        start = 0
        for t in range(len(frames) - 1):
            if first[t, env]:
                start = t
            if first[t + 1, env]:
                continue
            distances = []
            for i in range(max(start, t + 1 - config.memory_length), t + 1):
                difference = np.abs(small[t + 1, env] - small[i, env])
                if config.distance == "l0":
                    distances.append(float((difference > 1e-5).any(-1).sum()))
                else:
                    distances.append(float(np.sqrt((difference**2).sum())))
            kth = sorted(distances)[min(config.neighbor_rank, len(distances)) - 1]
            logs = {"raw": kth, "log": np.log(max(kth, 1e-5)), "log1p": np.log(1 + kth)}
            reward[t, env] = logs[config.reward_transform]
    return reward
