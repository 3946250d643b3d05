"""r_I, the intrinsic reward (Eq. 5 to 8): distance of the new state to its k-th nearest earlier state of the episode.

    r_I(t) = f( k-th smallest of { ‖s↓_{t+1} − s↓_i‖ : i = t+1−B … t, same episode } )

It is the reward of step t, which leads from s_t to s_{t+1}. Choices where the paper is open or differs from its code:

* f is the identity (`raw`): the paper writes a logarithm, but its scores are sums of plain distances. `log` is Eq. 8
  with distances clamped to at least LOG_FLOOR, so that a revisit costs 11.5 and not ∞; `log1p` is log(1 + d), which is
  0 at a revisit and never negative, as in APT.
* The state is compared with earlier ones only, the episode's first frame included. If there are fewer than k, the
  distance to the farthest of them is used.
* The step that ends an episode has r_I = 0, for every f: the frame after it belongs to the next episode.
* L0 counts the cells in which any channel differs. The original code allows a difference of 1e-5 between averages; ours
  are integer sums, so any difference counts.
* The view is `rollout.full`, in which the agent moves instead of the background.

Distances are exact: products of pooled sums stay below 2⁵³, so |q|² + |k|² − 2 q·k in float64 has no rounding error,
and equal frames have distance 0. Float vectors are subtracted directly.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from numpy import ndarray
from torch import Tensor

from expgen.errors import InputError
from expgen.reward.compression import compress_frames, decompress_frames
from expgen.reward.pooling import LARGEST_POOL, Pooled, pooled
from expgen.reward.source import RewardSource
from expgen.rollout.rollout import Rollout
from expgen.settings import later_setting, setting

Distance = Literal["l2", "l0"]
Transform = Literal["raw", "log", "log1p"]

LOG_FLOOR = 1e-5  # the original code ignores smaller differences
_QUERIES = 128  # states compared at once; their windows of earlier states overlap, so little work is wasted
_CHUNK_BYTES = 2**27  # limit for the float64 frames of the environments that are processed together


@dataclass(frozen=True)
class KnnConfig:
    """Settings of r_I: the paper's values, or the original code's where the paper gives none."""

    neighbor_rank: int = setting(2, "k_NN: r_I is the distance to the k-th nearest neighbour", low=1)
    distance: Distance = setting("l2", "norm of the difference between pooled frames")
    reward_transform: Transform = setting("raw", "r_I is the distance d itself, log(max(d, 1e-5)) or log(1 + d)")
    memory_length: int = setting(500, "number of the episode's latest frames that a frame is compared with", low=1)
    pool: int = setting(3, "side in pixels of the cells over which frames are averaged", low=1, high=LARGEST_POOL)
    reward_scale: float = setting(1.0, "factor on r_I for learning; reported returns do not include it", low=0)
    end_value: float = later_setting(0.0, "κ: share of V(s) bootstrapped at success or time-out", low=0, high=1)


class KnnReward(RewardSource):
    """Owns the latest frames of the current episodes, with which later steps are compared."""

    def __init__(self, config: KnnConfig, num_envs: int) -> None:
        self.config, self.end_value = config, config.end_value
        self.frames: Tensor | None = None  # [≤ B−1, N, cells, C] pooled, newest last; None before the first rollout
        self.age = torch.zeros(num_envs, dtype=torch.int64)  # [N] how many of them belong to the current episode
        self.intrinsic: Tensor = torch.zeros(0, num_envs)  # [T, N] r_I of the last rollout

    def __call__(self, rollout: Rollout) -> Tensor:
        """Return r_I times `reward_scale` for each step of the rollout, `[T, N]` float32 on its device."""
        return self.measure(rollout.full, rollout.first) * self.config.reward_scale

    def measure(self, full: Tensor, first: Tensor) -> Tensor:
        """Return r_I `[T, N]` of the steps between frames `full` `[T+1, N, …]`; slot 0 was slot T of the last call."""
        config, device = self.config, full.device
        timeline, scale = pooled(full, config.pool)  # [T+1, N, cells, C]
        num_earlier = 0
        if self.frames is not None:
            num_earlier = len(self.frames)
            timeline = torch.cat([self.frames.to(device), timeline])  # [K+T+1, N, cells, C]
        position = torch.arange(num_earlier, len(timeline), device=device)[:, None]  # [T+1, 1] of slot t in timeline
        start = torch.where(first, position, -1)  # [T+1, N]
        start[0] = torch.where(first[0], num_earlier, num_earlier - self.age.to(device))
        start = start.cummax(0).values  # [T+1, N] first stored frame of slot t's episode
        earliest = start.maximum(position - config.memory_length)[1:]  # [T, N] first frame compared with s_{t+1}

        reward = _window_rewards(Pooled(timeline, scale), earliest, first[1:], config)  # [T, N]
        num_kept = min(config.memory_length, len(timeline)) - 1
        self.frames = timeline[len(timeline) - 1 - num_kept : -1].clone()  # the last slot is the next call's slot 0
        self.age = (position[-1] - start[-1]).clamp_(max=num_kept)
        self.intrinsic = reward
        return reward

    def state(self) -> dict[str, ndarray]:
        """Return the compressed frames since the start of the oldest current episode."""
        if self.frames is None:
            return {}
        oldest = int(self.age.max())
        frames = self.frames[len(self.frames) - oldest :].cpu().numpy()
        return {**compress_frames(frames), "age": self.age.cpu().numpy()}

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        if state:
            self.frames = torch.from_numpy(decompress_frames(state))
            self.age = torch.from_numpy(state["age"].copy())


def reward_from(
    squared: Tensor, is_other: Tensor, num_earlier: Tensor, first: Tensor, scale: int, config: KnnConfig
) -> Tensor:
    """Return r_I `[…]` float32 from squared distances `[…, keys]`, which are overwritten.

    `is_other` marks the keys that are not earlier frames of the episode, and `num_earlier` `[…, 1]` counts the others.
    r_I is 0 where `first` `[…]` marks the frame as one of the next episode.
    """
    squared.masked_fill_(is_other, torch.inf)
    nearest = squared.topk(min(config.neighbor_rank, squared.shape[-1]), largest=False).values  # […, ≤ k], ascending
    rank = num_earlier.clamp(1, nearest.shape[-1]) - 1  # […, 1]
    distance = nearest.gather(-1, rank)[..., 0].sqrt() / (1 if config.distance == "l0" else scale)
    if config.reward_transform == "log":
        distance = distance.clamp(min=LOG_FLOOR).log()
    elif config.reward_transform == "log1p":
        distance = distance.log1p()
    return distance.float().masked_fill_(first, 0.0)


def _window_rewards(frames: Pooled, earliest: Tensor, first: Tensor, config: KnnConfig) -> Tensor:
    """Return r_I `[T, N]` of the last T of the K+T+1 consecutive `frames`.

    Each is compared with the frames from `earliest` `[T, N]`, an index, to before it; `first` is `[T, N]`.
    """
    timeline, scale = frames
    device, (num_queries, num_envs) = timeline.device, earliest.shape
    earliest, first = earliest.T[..., None], first.T  # [N, T, 1], [N, T]
    first_query = len(timeline) - num_queries
    group_size = max(1, _CHUNK_BYTES // (8 * timeline[:, 0].numel()))
    reward = torch.empty(num_queries, num_envs, dtype=torch.float32, device=device)
    for env in range(0, num_envs, group_size):
        group = slice(env, env + group_size)  # n environments
        point = to_points(timeline[:, group].transpose(0, 1), scale, config)  # [n, K+T+1, D]
        is_exact = config.distance == "l2" and not timeline.is_floating_point()
        norm = torch.linalg.vecdot(point, point) if is_exact else None  # [n, K+T+1]
        for begin in range(first_query, len(timeline), _QUERIES):
            end = min(begin + _QUERIES, len(timeline))
            oldest = max(0, begin - config.memory_length)
            query = torch.arange(begin, end, device=device)[:, None]  # [q, 1]
            key = torch.arange(oldest, end - 1, device=device)  # [keys]
            rows = slice(begin - first_query, end - first_query)
            low = earliest[group, rows]  # [n, q, 1]
            squared = _squared(point, norm, slice(begin, end), slice(oldest, end - 1), config.distance)  # [n, q, keys]
            is_other = (key < low) | (key >= query)  # [n, q, keys]
            reward[rows, group] = reward_from(squared, is_other, query - low, first[group, rows], scale, config).T
    return reward


def to_points(frame: Tensor, scale: int, config: KnnConfig) -> Tensor:
    """Convert pooled frames `[…, cells, C]` to the points `[…, D]` float64 between which distances are measured."""
    return _cell_codes(frame, scale) if config.distance == "l0" else _float64(frame.flatten(-2))


def _float64(frame: Tensor) -> Tensor:
    return frame.to(torch.float64, memory_format=torch.contiguous_format)


def _cell_codes(frame: Tensor, scale: int) -> Tensor:
    """Encode each cell's channels as one number, exactly: `[…, cells, C]` → `[…, cells]` float64."""
    channels = frame.shape[-1]
    if (scale + 1) ** channels > 2**53:
        raise InputError(f"--distance is l0 for {channels} channels in cells of {scale} levels; accepted: l2")
    code = _float64(frame[..., 0])
    for channel in range(1, channels):
        code = code * (scale + 1) + frame[..., channel]
    return code


def _squared(point: Tensor, norm: Tensor | None, query: slice, key: slice, distance: Distance) -> Tensor:
    """Return squared distances `[n, q, keys]` among `point` `[n, K+T+1, D]`; `norm` is |point|², or None.

    With `norm`, they are |q − k|² = |q|² + |k|² − 2 q·k, which is exact for integers; without, differences are taken
    (l2) or counted (l0) directly.
    """
    if norm is not None:
        squared = norm[:, query, None] + norm[:, None, key]
        return squared.baddbmm_(point[:, query], point[:, key].mT, alpha=-2)
    order = 0.0 if distance == "l0" else 2.0
    return torch.cdist(point[:, query], point[:, key], order, "donot_use_mm_for_euclid_dist").square_()
