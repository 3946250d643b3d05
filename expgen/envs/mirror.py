"""Half of a learner's games mirrored: what 200 levels teach of left they teach of right.

Many games know no difference between left and right: the mirror image of a level is a level that their generator could
have made, and playing it with left and right swapped is playing the level. A learner whose games N/2 … N−1 are shown
mirrored, with their actions swapped, therefore learns from twice the levels. No level is seen that the set does not
hold; what goes in beside it is that the game has this symmetry. Agents play unmirrored.

What a game writes into a corner stays there: Jumper's compass is mirrored in its place and the bar of distance below it
is left as it is. The corner that mirroring uncovers keeps the mirrored copy, for what was behind it nobody has seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy import ndarray

from expgen.envs.vec_env import EnvSpec, LevelControl, Observation, Snapshots, VecEnv, env_repr
from expgen.errors import InputError

_PROCGEN_SWAP = np.array([6, 7, 8, 3, 4, 5, 0, 1, 2, *range(9, 15)], np.int32)  # left and right of every direction
_MINIMAZE_SWAP = np.array([0, 2, 1, 3, 4], np.int32)


_COMPASS = 54  # the column of its middle


@cache
def _jumper_corner() -> tuple[ndarray, ndarray]:
    """Of Jumper's 64 × 64 pixels, those of the compass (a disc around row 9, column 54) and those of the bar."""
    row, column = np.mgrid[:64, :64]
    compass = (column - _COMPASS) ** 2 + (row - 9) ** 2 <= 73
    bar = (row >= 17) & (row <= 18) & (column >= 46) & ~compass
    return compass, bar


@dataclass(frozen=True)
class Mirror:
    """How the mirror image of a game is made: the actions that change places, and what stays in its corner."""

    swap: ndarray  # [A] the action that does in the mirrored game what each does in the game
    has_compass: bool = False  # in the upper right corner, as Jumper has it

    def mirrored(self, obs: ndarray) -> ndarray:
        """`obs` `[N, H, W, C]` as the mirrored game shows it."""
        image = torch.from_numpy(obs).flip(2).numpy()
        if self.has_compass:
            compass, bar = _jumper_corner()
            row, column = np.nonzero(compass)
            image[:, row, column] = obs[:, row, 2 * _COMPASS - column]
            image[:, bar] = obs[:, bar]
        return image


MIRRORS = {
    "minimaze": Mirror(_MINIMAZE_SWAP),
    "procgen:jumper": Mirror(_PROCGEN_SWAP, has_compass=True),
    "procgen:maze": Mirror(_PROCGEN_SWAP),
}


def mirror_of(spec: EnvSpec) -> Mirror:
    """How the games of `spec` are mirrored; an InputError where that is not known."""
    if spec.name not in MIRRORS:
        known = ", ".join(name.removeprefix("procgen:") for name in MIRRORS)
        raise InputError(f"--mirror is on but {spec.name} has no mirror image that we know; accepted: {known}")
    return MIRRORS[spec.name]


class HalfMirrored:
    """Games of which the second half is mirrored; levels, rewards and ends are as they were.

    `full`, which r_I is measured on, is mirrored where it is `obs`; where it is a view of its own it stays as it is,
    for distances within an episode are the same either way.
    """

    __repr__ = env_repr

    def __init__(self, env: VecEnv) -> None:
        if not (isinstance(env, LevelControl) and isinstance(env, Snapshots)):
            raise InputError(f"--mirror is on but {env.spec.name} can't be saved; accepted: games without such options")
        self.spec, self.levels, self.num_envs = env.spec, env.levels, env.num_envs
        self._env, self._mirror, self._from = env, mirror_of(env.spec), env.num_envs // 2
        bare = env.observe()
        self._bare, obs = bare.obs, bare.obs.copy()
        self._seen = bare._replace(obs=obs, full=obs if bare.full is bare.obs else bare.full)
        self._is_stale = True

    def act(self, action: ndarray) -> None:
        swapped = np.array(action, np.int32)
        swapped[self._from :] = self._mirror.swap[swapped[self._from :]]
        self._env.act(swapped)
        self._is_stale = True

    def observe(self) -> Observation:
        self._env.observe()
        if self._is_stale:
            self._show(0, self.num_envs)
            self._is_stale = False
        return self._seen

    def play(self, env: int, level: int) -> None:
        """As LevelControl says; the level is mirrored where the game is."""
        self._env.play(env, level)
        self._show(env, env + 1)

    def save(self) -> dict[str, ndarray]:
        """What the games save: which of them are mirrored follows from their number."""
        return self._env.save()

    def restore(self, state: Mapping[str, ndarray]) -> None:
        self._env.restore(state)
        self._show(0, self.num_envs)

    def close(self) -> None:
        self._env.close()

    def _show(self, begin: int, end: int) -> None:
        """Bring games begin … end − 1 to `obs`."""
        middle = min(max(self._from, begin), end)
        self._seen.obs[begin:middle] = self._bare[begin:middle]
        if middle < end:
            self._seen.obs[middle:end] = self._mirror.mirrored(self._bare[middle:end])
