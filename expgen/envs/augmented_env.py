"""Data augmentation of games: mirrored, rotated and recoloured views (`--mirror`, `--recolor`).

In many games the mirror image of a level is a level that the generator could have made, played with left and right
swapped; mazes seen from above can also be rotated. A learner with an equal share of its games in each view learns from
two, four or eight times as many levels. All of them come from the level set; the only added knowledge is the game's
symmetry. Agents are evaluated on the original view. `--recolor` permutes the colour channels, which no generator does:
a policy trained on all six permutations has to rely on shapes, and cannot recognise a level by its background colour.

Displays in a corner of the picture stay there: Jumper's compass is mirrored in place and the distance bar below it is
unchanged. The opposite corner keeps the mirrored copy of them, since the background behind them is unknown. Heist's
ring of keys, which covers parts of the maze, moves with the picture.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
import torch
from numpy import ndarray

from expgen.envs.minimaze import ACTIONS as MINIMAZE_ACTIONS
from expgen.envs.vec_env import EnvSpec, LevelControl, Observation, Snapshots, VecEnv, env_repr
from expgen.errors import InputError

Direction = tuple[int, int]  # (row, column) on a picture; rows go down


@dataclass(frozen=True)
class View:
    """One transformation of a picture: transpose, then flip, then permute the colours."""

    is_transposed: bool = False
    flips_rows: bool = False
    flips_columns: bool = False
    colors: tuple[int, ...] = ()  # source channel of each channel; empty: unchanged

    def move_pixels(self, obs: ndarray) -> ndarray:
        """Return `obs` `[N, H, W, C]` transposed and flipped, in the original colours."""
        picture = torch.from_numpy(obs)
        if self.is_transposed:
            picture = picture.transpose(1, 2)
        return np.asarray(picture.flip([1] * self.flips_rows + [2] * self.flips_columns).contiguous())

    def recolor(self, obs: ndarray) -> ndarray:
        """Return `obs` `[N, H, W, C]` with permuted channels."""
        return np.stack([obs[..., channel] for channel in self.colors], axis=-1) if self.colors else obs

    @property
    def moves_pixels(self) -> bool:
        """Whether directions in this view differ from those in the game."""
        return self.is_transposed or self.flips_rows or self.flips_columns

    def in_game(self, direction: Direction) -> Direction:
        """Convert a direction in this view to the direction in the game."""
        row = -direction[0] if self.flips_rows else direction[0]
        column = -direction[1] if self.flips_columns else direction[1]
        return (column, row) if self.is_transposed else (row, column)


MIRRORED = (View(), View(flips_columns=True))
UPSIDE_DOWN = (View(), View(flips_rows=True))
FLIPPED = (*MIRRORED, View(flips_rows=True), View(flips_rows=True, flips_columns=True))
_BOTH = (False, True)
ALL_VIEWS = tuple(View(*flags) for flags in product(_BOTH, _BOTH, _BOTH))  # four rotations, each mirrored or not


@dataclass(frozen=True)
class Symmetry:
    """The views in which a game keeps its rules, and the directions of its actions."""

    views: tuple[View, ...]
    directions: Mapping[int, Direction]  # of the actions that move the agent; the others are the same in every view
    restore_corner: Callable[[ndarray, ndarray], None] | None = None  # redraws a corner display in a moved picture

    def show(self, view: View, obs: ndarray) -> ndarray:
        """Return `obs` `[N, H, W, C]` in `view`."""
        shown = view.move_pixels(obs)
        if self.restore_corner is not None and view.moves_pixels:
            self.restore_corner(shown, obs)
        return view.recolor(shown)

    def actions_in_game(self, view: View, num_actions: int) -> ndarray:
        """Return the game's action for each action in `view`, `[A]`; of several with one effect, the last."""
        by_direction = {direction: action for action, direction in self.directions.items()}
        actions = np.arange(num_actions, dtype=np.int32)
        if view.moves_pixels:
            for action, direction in self.directions.items():
                actions[action] = by_direction[view.in_game(direction)]
        return actions


_COMPASS_COLUMN = 54  # middle of Jumper's compass


def _restore_jumper_corner(shown: ndarray, obs: ndarray) -> None:
    """Draw Jumper's compass mirrored in place, and its distance bar unchanged."""
    compass, bar = _jumper_corner()
    row, column = np.nonzero(compass)
    shown[:, row, column] = obs[:, row, 2 * _COMPASS_COLUMN - column]
    shown[:, bar] = obs[:, bar]


@cache
def _jumper_corner() -> tuple[ndarray, ndarray]:
    """Return masks [64, 64] of the compass (a disc around row 9, column 54) and of the bar."""
    row, column = np.mgrid[:64, :64]
    compass = (column - _COMPASS_COLUMN) ** 2 + (row - 9) ** 2 <= 73
    bar = (row >= 17) & (row <= 18) & (column >= 46) & ~compass
    return compass, bar


_MINIMAZE = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}
_FREE = {action: (1 - action % 3, action // 3 - 1) for action in range(9)}  # ProcGen's nine movement actions
_GRID = {action: (0, column) if column else (row, 0) for action, (row, column) in _FREE.items()}  # no diagonals
SYMMETRIES = {
    "minimaze": Symmetry(ALL_VIEWS, {MINIMAZE_ACTIONS.index(name): step for name, step in _MINIMAZE.items()}),
    "procgen:bigfish": Symmetry(MIRRORED, _FREE),
    "procgen:bossfight": Symmetry(MIRRORED, _FREE),
    "procgen:caveflyer": Symmetry(MIRRORED, _FREE),
    "procgen:chaser": Symmetry(ALL_VIEWS, _FREE),
    "procgen:climber": Symmetry(MIRRORED, _FREE),  # but for the start, always on the left
    "procgen:dodgeball": Symmetry(FLIPPED, _FREE),
    "procgen:fruitbot": Symmetry(MIRRORED, _FREE),
    "procgen:heist": Symmetry(ALL_VIEWS, _FREE),
    "procgen:jumper": Symmetry(MIRRORED, _FREE, _restore_jumper_corner),
    "procgen:leaper": Symmetry(MIRRORED, _FREE),
    "procgen:maze": Symmetry(ALL_VIEWS, _GRID),
    "procgen:miner": Symmetry(MIRRORED, _FREE),
    "procgen:starpilot": Symmetry(UPSIDE_DOWN, _FREE),
}


def symmetry_of(spec: EnvSpec, mirror: bool, recolor: bool) -> Symmetry:
    """Return the requested views of the games of `spec`; raise InputError if the game does not support them."""
    symmetry = Symmetry((View(),), {})
    if mirror:
        if spec.name not in SYMMETRIES:
            known = ", ".join(name.removeprefix("procgen:") for name in SYMMETRIES)
            raise InputError(f"--mirror is on but {spec.name} has no known symmetry; accepted: {known}")
        symmetry = SYMMETRIES[spec.name]
    if not recolor:
        return symmetry
    if len(spec.obs_shape) != 3 or spec.obs_shape[-1] != 3:
        raise InputError(f"--recolor is on but {spec.name} has no RGB pictures; accepted: games with RGB pictures")
    orders = [order if order != (0, 1, 2) else () for order in permutations(range(3))]
    return replace(symmetry, views=tuple(replace(view, colors=order) for view in symmetry.views for order in orders))


class AugmentedEnv:
    """An environment whose games are shown in several views, equal shares each; the first view is the original.

    Levels, rewards and episode ends stay the same. `full`, the input of r_I, is transformed if it is `obs`; a separate
    uncentred view stays the same, since distances within an episode do not depend on the view.
    """

    __repr__ = env_repr

    def __init__(self, env: VecEnv, mirror: bool = True, recolor: bool = False) -> None:
        self._symmetry = symmetry_of(env.spec, mirror, recolor)
        if not (isinstance(env, LevelControl) and isinstance(env, Snapshots)):
            flag = "--mirror" if mirror else "--recolor"
            accepted = "accepted: without hidden and use_generated_assets"
            raise InputError(f"{flag} is on but these games of {env.spec.name} cannot be saved; {accepted}")
        self.spec, self.levels, self.num_envs = env.spec, env.levels, env.num_envs
        self._env: Any = env
        views = self._symmetry.views
        self._view = np.arange(env.num_envs) * len(views) // env.num_envs  # [N] view of each game, ascending
        tables = [self._symmetry.actions_in_game(view, env.spec.num_actions) for view in views]
        self._in_game = np.stack(tables)[self._view]  # [N, A]
        original = env.observe()
        self._original_obs, obs = original.obs, original.obs.copy()
        self._observation = original._replace(obs=obs, full=obs if original.full is original.obs else original.full)
        self._is_stale = True

    def act(self, action: ndarray) -> None:
        self._env.act(self._in_game[np.arange(self.num_envs), action])
        self._is_stale = True

    def observe(self) -> Observation:
        self._env.observe()
        if self._is_stale:
            self._update_obs(0, self.num_envs)
            self._is_stale = False
        return self._observation

    def play(self, env: int, level: int) -> None:
        """See LevelControl; the game keeps its view."""
        self._env.play(env, level)
        self._update_obs(env, env + 1)

    def save(self) -> dict[str, ndarray]:
        """Return the state of the games; the view of a game depends only on its index."""
        return dict(self._env.save())

    def restore(self, state: Mapping[str, ndarray]) -> None:
        self._env.restore(state)
        self._update_obs(0, self.num_envs)

    def close(self) -> None:
        self._env.close()

    def _update_obs(self, begin: int, end: int) -> None:
        """Transform the pictures of games begin … end − 1 into `obs`."""
        for index, view in enumerate(self._symmetry.views):
            low, high = np.searchsorted(self._view, (index, index + 1)).clip(begin, end)
            if low < high:
                self._observation.obs[low:high] = self._symmetry.show(view, self._original_obs[low:high])
