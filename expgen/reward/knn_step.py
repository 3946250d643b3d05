"""r_I one step at a time, for training loops that need each reward immediately; `KnnReward` computes whole rollouts.

The formula is that of `reward.knn`. Earlier frames are stored as float64 points in one block per environment; a step
writes one row and reads the others once: 0.2 ms for 500 frames of 21 × 21 × 3 cells, which take 5.3 MB. For uint8
frames the results equal those of `KnnReward` exactly; float vectors may differ in the last digit, as they are summed in
another order.
"""

import numpy as np
import torch
from numpy import ndarray
from torch.nn import functional as F

from expgen.errors import InputError
from expgen.reward.knn import KnnConfig, reward_from, to_points
from expgen.reward.pooling import pooled
from expgen.settings import check_config, check_integer, check_type


class KnnStepReward:
    """Owns the earlier frames of the current episode of each of `num_envs` environments."""

    def __init__(self, config: KnnConfig | None = None, num_envs: int = 1) -> None:
        num_envs = check_integer("num_envs", num_envs, 1)
        check_type("config", config, (KnnConfig, type(None)), "a KnnConfig")
        self.config = config or KnnConfig()
        check_config(self.config)
        self.count = torch.zeros(num_envs, dtype=torch.int64)  # [N] frames of the current episode so far
        self._point = torch.zeros(num_envs, 0, 0, dtype=torch.float64)  # [N, ≤ B, D] a ring buffer once it has B rows
        self._norm = torch.zeros(num_envs, 0, dtype=torch.float64)  # [N, ≤ B] |point|²
        self._shape: tuple[int, ...] | None = None

    def __repr__(self) -> str:
        return f"KnnStepReward({len(self.count)} environments, frames {self.count.tolist()})"

    def __call__(self, frame: ndarray, first: ndarray) -> ndarray:
        """Return r_I `[N]` float32 of the step that led to `frame` `[N, …]`; 0 where `first` `[N]` opens an episode.

        Images are uint8 (height, width, channel); vectors are float32. `reward_scale` is not applied.
        """
        config = self.config
        frame, first = self._checked(frame, first)
        cell, scale = pooled(torch.from_numpy(frame)[None], config.pool)  # [1, N, cells, C]
        point = to_points(cell[0], scale, config)  # [N, D]
        self._grow(point.shape[1])
        is_exact = config.distance == "l2" and frame.dtype == np.uint8
        opens = torch.from_numpy(first)
        self.count[opens] = 0
        num_earlier = self.count.clamp(max=config.memory_length)  # [N]
        norm = torch.linalg.vecdot(point, point) if is_exact else torch.zeros(len(point), dtype=torch.float64)  # [N]

        reward = torch.zeros(len(point), dtype=torch.float32)  # [N]
        if most := int(num_earlier.max()):
            earlier = self._point[:, :most]  # [N, K, D]
            if is_exact:
                squared = self._norm[:, None, :most] + norm[:, None, None]
                squared = squared.baddbmm_(point[:, None], earlier.mT, alpha=-2)[:, 0]  # [N, K]
            elif config.distance == "l0":
                squared = (earlier != point[:, None]).sum(2).double().square_()
            else:
                squared = (earlier - point[:, None]).square().sum(2)
            is_other = torch.arange(most) >= num_earlier[:, None]  # [N, K]
            reward = reward_from(squared, is_other, num_earlier[:, None], opens, scale, config)

        env, row = torch.arange(len(point)), self.count % config.memory_length
        self._point[env, row], self._norm[env, row] = point, norm
        self.count += 1
        return reward.numpy()

    def _grow(self, size: int) -> None:
        """Ensure a free row for the next frame of every environment, by doubling the rows up to B."""
        rows = self._point.shape[1]
        needed = min(int(self.count.max()) + 1, self.config.memory_length)
        if rows < needed:
            more = min(max(needed, 2 * rows, 16), self.config.memory_length) - rows
            self._point = F.pad(self._point.reshape(len(self.count), rows, size), (0, 0, 0, more))
            self._norm = F.pad(self._norm, (0, more))

    def _checked(self, frame: ndarray, first: ndarray) -> tuple[ndarray, ndarray]:
        """Return `frame` and `first` as contiguous arrays; raise InputError if types or shapes are wrong."""
        frame, first, num_envs = np.ascontiguousarray(frame), np.atleast_1d(first), len(self.count)
        if first.shape != (num_envs,) or first.dtype != bool:
            raise InputError(f"first is {first.tolist()}; accepted: {num_envs} booleans")
        if frame.dtype not in (np.uint8, np.float32):
            raise InputError(f"frame has dtype {frame.dtype}; accepted: uint8 (images) or float32")
        if frame.dtype == np.float32 and not np.isfinite(frame).all():
            raise InputError("frame has values that are not finite; accepted: finite values")
        expected = self._shape or (num_envs, *frame.shape[1:])
        if frame.ndim < 2 or frame.shape != expected:
            shape = str(expected) if frame.ndim > 1 else f"({num_envs}, …)"
            raise InputError(f"frame has shape {frame.shape}; accepted: {shape}")
        if self._shape is None and not first.all():
            raise InputError("first is False in the first call; accepted: True, for every environment")
        self._shape = expected
        return frame, first
