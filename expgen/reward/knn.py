"""r_I, the intrinsic reward (Eq. 5 to 8): how far the new state is from its k-th nearest earlier one in the episode.

    r_I(t) = f( k-th smallest of { ‖s↓_{t+1} − s↓_i‖ : i = t+1−B … t, same episode } )

It belongs to step t, which leads from s_t to s_{t+1}. Choices the paper leaves open or its code makes differently:

* f is the identity (`raw`): the paper writes a logarithm, its scores are sums of plain distances. `log` is Eq. 8 with
  distances below LOG_FLOOR taken for it, so that a revisit costs 11.5 and not ∞; `log1p` is log(1 + d), which is 0 at a
  revisit and never negative, as in APT.
* The state is compared with earlier ones only; the episode's first frame is among them. Where fewer than k are there,
  the farthest of them counts.
* The step that ended an episode is paid 0, whatever f: the frame after it belongs to the next episode.
* L0 counts the cells in which any channel differs. Sums of bytes differ by whole numbers, so the original code's
  tolerance of 1e-5 between averages is plain inequality here.
* The view is `rollout.full`, in which the agent moves and not the picture.

Whole numbers make it exact: products of pooled sums stay below 2⁵³, so |q|² + |k|² − 2 q·k in float64 has no rounding
and equal frames have distance 0. Vectors of floats are subtracted directly.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from numpy import ndarray
from torch import Tensor

from expgen.errors import InputError
from expgen.reward.packing import packed, unpacked
from expgen.reward.pooling import LARGEST_POOL, Pooled, pooled
from expgen.reward.source import RewardSource
from expgen.rollout.rollout import Rollout
from expgen.settings import later_setting, setting

Distance = Literal["l2", "l0"]
Transform = Literal["raw", "log", "log1p"]

LOG_FLOOR = 1e-5  # the difference the original code takes for none
_QUERIES = 128  # states compared at once; their window of earlier ones overlaps, so a few at a time waste little
_CHUNK_BYTES = 2**27  # float64 frames held at once: as many environments go together as fit


@dataclass(frozen=True)
class KnnConfig:
    """The intrinsic reward; the paper's values, and the original code's where the paper gives none."""

    neighbor_rank: int = setting(2, "which nearest neighbour r_I measures the distance to, k_NN", low=1)
    distance: Distance = setting("l2", "norm of the difference of two pooled frames")
    reward_transform: Transform = setting("raw", "r_I is the distance d itself, log(max(d, 1e-5)) or log(1 + d)")
    memory_length: int = setting(500, "earlier frames of the episode a frame is compared with", low=1)
    pool: int = setting(3, "pixels per side of the cells frames are averaged over", low=1, high=LARGEST_POOL)
    reward_scale: float = setting(1.0, "factor of r_I in what is learnt from; returns are reported without it", low=0)
    end_value: float = later_setting(
        0.0, "share κ of V(s) that a step is still worth which ends the episode by success or time-out", low=0, high=1
    )


class KnnReward(RewardSource):
    """Owns the frames of the episodes under way that later steps will be compared with."""

    def __init__(self, config: KnnConfig, num_envs: int) -> None:
        self.config, self.end_value = config, config.end_value
        self.frames: Tensor | None = None  # [≤ B−1, N, cells, C] pooled, the latest last; none before the first rollout
        self.age = torch.zeros(num_envs, dtype=torch.int64)  # [N] how many of them are of the episode under way
        self.intrinsic: Tensor = torch.zeros(0, num_envs)  # [T, N] r_I of the last rollout

    def __call__(self, rollout: Rollout) -> Tensor:
        """What each step of the rollout is paid, `[T, N]` float32 on its device: r_I, scaled for learning."""
        return self.measure(rollout.full, rollout.first) * self.config.reward_scale

    def measure(self, full: Tensor, first: Tensor) -> Tensor:
        """r_I of T steps that lead through `full` `[T+1, N, …]`, of which slot 0 is the last of the call before."""
        config, device = self.config, full.device
        timeline, white = pooled(full, config.pool)  # [T+1, N, cells, C]
        remembered = 0
        if self.frames is not None:
            remembered = len(self.frames)
            timeline = torch.cat([self.frames.to(device), timeline])  # [K+T+1, N, cells, C]
        now = torch.arange(remembered, len(timeline), device=device)[:, None]  # [T+1, 1] where slot t stands in it
        opened = torch.where(first, now, -1)  # [T+1, N]
        opened[0] = torch.where(first[0], remembered, remembered - self.age.to(device))
        start = opened.cummax(0).values  # [T+1, N] the first frame known of the episode
        earliest = start.maximum(now - config.memory_length)[1:]  # [T, N] what s_{t+1} is compared with begins here

        distance = kth_distance(Pooled(timeline, white), earliest, config)
        reward = transformed(distance, config.reward_transform).float()
        reward = reward.masked_fill_(first[1:], 0.0)  # [T, N]

        kept = min(config.memory_length, len(timeline)) - 1
        self.frames = timeline[len(timeline) - 1 - kept : -1].clone()  # the last slot opens the next rollout
        self.age = (now[-1] - start[-1]).clamp_(max=kept)
        self.intrinsic = reward
        return reward

    def state(self) -> dict[str, ndarray]:
        """The frames of the episodes under way, none older than the oldest of them."""
        if self.frames is None:
            return {}
        oldest = int(self.age.max())
        return {**packed(self.frames[len(self.frames) - oldest :].cpu().numpy()), "age": self.age.cpu().numpy()}

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        if state:
            self.frames = torch.from_numpy(unpacked(state))
            self.age = torch.from_numpy(state["age"].copy())


def kth_distance(frames: Pooled, earliest: Tensor, config: KnnConfig) -> Tensor:
    """Distance of each frame to its k-th nearest of those from `earliest` on and before it, `[T, N]` float64.

    `frames` are K+T+1 in order, of which the last T are asked about; `earliest` `[T, N]` are positions among them.
    A frame with nothing before it is infinitely far.
    """
    timeline, white = frames
    device, (num_queries, num_envs) = timeline.device, earliest.shape
    earliest = earliest.T[..., None]  # [N, T, 1]
    first_query = len(timeline) - num_queries
    together = max(1, _CHUNK_BYTES // (8 * timeline[:, 0].numel()))
    square = torch.empty(num_queries, num_envs, dtype=torch.float64, device=device)
    for env in range(0, num_envs, together):
        frame = timeline[:, env : env + together].transpose(0, 1)  # [n, K+T+1, cells, C]
        point = points_of(frame, white, config)  # [n, K+T+1, D]
        is_exact = config.distance == "l2" and not timeline.is_floating_point()
        norm = torch.linalg.vecdot(point, point) if is_exact else None  # [n, K+T+1]
        for begin in range(first_query, len(timeline), _QUERIES):
            end = min(begin + _QUERIES, len(timeline))
            oldest = max(0, begin - config.memory_length)
            position = torch.arange(begin, end, device=device)[:, None]  # [q, 1]
            key = torch.arange(oldest, end - 1, device=device)  # [keys]
            low = earliest[env : env + together, begin - first_query : end - first_query]  # [n, q, 1]
            far = _squared(point, norm, slice(begin, end), slice(oldest, end - 1), config.distance)  # [n, q, keys]
            far.masked_fill_((key < low) | (key >= position), torch.inf)
            nearest = far.topk(min(config.neighbor_rank, len(key)), largest=False).values  # [n, q, ≤ k], ascending
            rank = (position - low).clamp(1, nearest.shape[-1]) - 1  # [n, q, 1]
            square[begin - first_query : end - first_query, env : env + together] = nearest.gather(-1, rank)[..., 0].T
    return square.sqrt() if config.distance == "l0" else square.sqrt() / white


def points_of(frame: Tensor, white: int, config: KnnConfig) -> Tensor:
    """What distances are taken between: pooled frames `[…, cells, C]` → `[…, D]` float64."""
    return _cell_codes(frame, white) if config.distance == "l0" else _float64(frame.flatten(-2))


def transformed(distance: Tensor, transform: Transform) -> Tensor:
    """f(d): what a distance is worth."""
    if transform == "log":
        return distance.clamp(min=LOG_FLOOR).log()
    return distance.log1p() if transform == "log1p" else distance


def _float64(frame: Tensor) -> Tensor:
    return frame.to(torch.float64, memory_format=torch.contiguous_format)


def _cell_codes(frame: Tensor, white: int) -> Tensor:
    """One number per cell that tells its channels apart: `[…, cells, C]` → `[…, cells]` float64, exact."""
    channels = frame.shape[-1]
    if (white + 1) ** channels > 2**53:
        raise InputError(f"--distance is l0 for {channels} channels in cells of {white} levels; accepted: l2")
    code = _float64(frame[..., 0])
    for channel in range(1, channels):
        code = code * (white + 1) + frame[..., channel]
    return code


def _squared(point: Tensor, norm: Tensor | None, query: slice, key: slice, distance: Distance) -> Tensor:
    """Squared distances `[n, q, keys]` among `point` `[n, K+T+1, D]`: by products where their squares `norm` are given.

    |q − k|² = |q|² + |k|² − 2 q·k is exact for whole numbers; all else is subtracted and counted directly.
    """
    if norm is not None:
        square = norm[:, query, None] + norm[:, None, key]
        return square.baddbmm_(point[:, query], point[:, key].mT, alpha=-2)
    order = 0.0 if distance == "l0" else 2.0
    return torch.cdist(point[:, query], point[:, key], order, "donot_use_mm_for_euclid_dist").square_()
