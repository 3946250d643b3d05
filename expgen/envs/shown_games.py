"""Games shown mirrored, turned and in other colours: what 200 levels teach of left they teach of right.

Many games know no difference between left and right: the mirror image of a level is a level that their generator could
have made, and playing it with left and right swapped is playing the level. Mazes seen from above can be turned as well.
A learner whose games are shown in each of these ways, an equal share of them in each, therefore learns from twice the
levels, or from eight times as many. No level is seen that the set does not hold; what goes in beside it is that the
game has these symmetries. Agents play the game as it is.

Colours are another matter: a level whose red, green and blue are exchanged is none that the generator makes. Who is
shown a game in all six orders of the three learns it by shapes, and cannot know a level by the colour of its sky.

What a game writes into a corner stays there: Jumper's compass is mirrored in its place and the bar of distance below it
is left as it is. The corner that mirroring uncovers keeps the mirrored copy, for what was behind it nobody has seen.
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

Direction = tuple[int, int]  # (row, column) on a picture, whose rows go down


@dataclass(frozen=True)
class View:
    """One way to show a picture: rows and columns exchanged, then either turned round; and the order of its colours."""

    is_transposed: bool = False
    flips_rows: bool = False
    flips_columns: bool = False
    colors: tuple[int, ...] = ()  # the channel of the game that each channel shows; empty: its own

    def show(self, obs: ndarray) -> ndarray:
        """`obs` `[N, H, W, C]` turned as in this view, in the game's colours."""
        picture = torch.from_numpy(obs)
        if self.is_transposed:
            picture = picture.transpose(1, 2)
        shown: ndarray = picture.flip([1] * self.flips_rows + [2] * self.flips_columns).contiguous().numpy()
        return shown

    def recolor(self, shown: ndarray) -> ndarray:
        """`shown` `[N, H, W, C]` with its channels in this view's order."""
        return np.stack([shown[..., channel] for channel in self.colors], axis=-1) if self.colors else shown

    @property
    def is_turned(self) -> bool:
        """Whether a direction on this view is another one in the game."""
        return self.is_transposed or self.flips_rows or self.flips_columns

    def in_game(self, direction: Direction) -> Direction:
        """Where a movement on this view leads in the game."""
        row = -direction[0] if self.flips_rows else direction[0]
        column = -direction[1] if self.flips_columns else direction[1]
        return (column, row) if self.is_transposed else (row, column)


MIRROR = (View(), View(flips_columns=True))
ON_ITS_HEAD = (View(), View(flips_rows=True))
FLIPS = (*MIRROR, View(flips_rows=True), View(flips_rows=True, flips_columns=True))
_BOTH = (False, True)
EVERY_WAY = tuple(View(*ways) for ways in product(_BOTH, _BOTH, _BOTH))  # four turns, each mirrored or not

_STEPS: dict[str, Direction] = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}


@dataclass(frozen=True)
class Symmetry:
    """The views in which a game is the same game, and what its actions do in them."""

    views: tuple[View, ...]
    directions: Mapping[int, Direction]  # of the actions that move; the others are the same in every view
    corner: Callable[[ndarray, ndarray], None] | None = None  # puts back what a mirrored picture has in its corner

    def show(self, view: View, obs: ndarray) -> ndarray:
        """`obs` `[N, H, W, C]` as `view` shows the game."""
        shown = view.show(obs)
        if self.corner is not None and view.is_turned:
            self.corner(shown, obs)
        return view.recolor(shown)

    def actions_in_game(self, view: View, num_actions: int) -> ndarray:
        """The action of the game that each action means to who sees `view`, `[A]`; where several do it, the last."""
        by_direction = {direction: action for action, direction in self.directions.items()}
        actions = np.arange(num_actions, dtype=np.int32)
        if view.is_turned:
            for action, direction in self.directions.items():
                actions[action] = by_direction[view.in_game(direction)]
        return actions


def _keep_compass(shown: ndarray, obs: ndarray) -> None:
    """Jumper's corner: the compass mirrored in its place, and the bar as it was."""
    compass, bar = _jumper_corner()
    row, column = np.nonzero(compass)
    shown[:, row, column] = obs[:, row, 2 * _COMPASS - column]
    shown[:, bar] = obs[:, bar]


_COMPASS = 54  # the column of its middle


@cache
def _jumper_corner() -> tuple[ndarray, ndarray]:
    """Of 64 × 64 pixels, those of the compass (a disc around row 9, column 54) and those of the bar."""
    row, column = np.mgrid[:64, :64]
    compass = (column - _COMPASS) ** 2 + (row - 9) ** 2 <= 73
    bar = (row >= 17) & (row <= 18) & (column >= 46) & ~compass
    return compass, bar


_FREE = {action: (1 - action % 3, action // 3 - 1) for action in range(9)}  # nine directions
_GRID = {action: (0, column) if column else (row, 0) for action, (row, column) in _FREE.items()}  # no diagonals
SYMMETRIES = {
    "minimaze": Symmetry(EVERY_WAY, {MINIMAZE_ACTIONS.index(name): step for name, step in _STEPS.items()}),
    "procgen:bigfish": Symmetry(MIRROR, _FREE),
    "procgen:bossfight": Symmetry(MIRROR, _FREE),
    "procgen:caveflyer": Symmetry(MIRROR, _FREE),
    "procgen:chaser": Symmetry(EVERY_WAY, _FREE),
    "procgen:dodgeball": Symmetry(FLIPS, _FREE),
    "procgen:fruitbot": Symmetry(MIRROR, _FREE),
    "procgen:heist": Symmetry(EVERY_WAY, _FREE),
    "procgen:jumper": Symmetry(MIRROR, _FREE, _keep_compass),
    "procgen:leaper": Symmetry(MIRROR, _FREE),
    "procgen:maze": Symmetry(EVERY_WAY, _GRID),
    "procgen:miner": Symmetry(MIRROR, _FREE),
    "procgen:starpilot": Symmetry(ON_ITS_HEAD, _FREE),
}


def symmetry_of(spec: EnvSpec, mirror: bool, recolor: bool) -> Symmetry:
    """The views of the games of `spec` that are asked for; an InputError where none are known."""
    symmetry = _mirror_images(spec) if mirror else Symmetry((View(),), {})
    if not recolor:
        return symmetry
    if len(spec.obs_shape) != 3 or spec.obs_shape[-1] != 3:
        accepted = "accepted: games that show red, green and blue"
        raise InputError(f"--recolor is on but {spec.name} has no pictures of three colours; {accepted}")
    orders = [order if order != (0, 1, 2) else () for order in permutations(range(3))]
    return replace(symmetry, views=tuple(replace(view, colors=order) for view in symmetry.views for order in orders))


def _mirror_images(spec: EnvSpec) -> Symmetry:
    if spec.name not in SYMMETRIES:
        known = ", ".join(name.removeprefix("procgen:") for name in SYMMETRIES)
        raise InputError(f"--mirror is on but {spec.name} has no mirror image that we know; accepted: {known}")
    return SYMMETRIES[spec.name]


class ShownGames:
    """Games shown in several views, the first of them as they are; levels, rewards and ends stay.

    `full`, which r_I is measured on, is shown alike where it is `obs`; where it is a view of its own it stays as it is,
    for distances within an episode are the same either way.
    """

    __repr__ = env_repr

    def __init__(self, env: VecEnv, mirror: bool = True, recolor: bool = False) -> None:
        self._symmetry = symmetry_of(env.spec, mirror, recolor)
        if not (isinstance(env, LevelControl) and isinstance(env, Snapshots)):
            accepted = "accepted: without hidden and use_generated_assets"
            flag = "--mirror" if mirror else "--recolor"
            raise InputError(f"{flag} is on but these games of {env.spec.name} cannot be saved; {accepted}")
        self.spec, self.levels, self.num_envs = env.spec, env.levels, env.num_envs
        self._env: Any = env
        views = self._symmetry.views
        self._view = np.arange(env.num_envs) * len(views) // env.num_envs  # [N] equal shares, side by side
        tables = [self._symmetry.actions_in_game(view, env.spec.num_actions) for view in views]
        self._in_game = np.stack(tables)[self._view]  # [N, A]
        bare = env.observe()
        self._bare, obs = bare.obs, bare.obs.copy()
        self._seen = bare._replace(obs=obs, full=obs if bare.full is bare.obs else bare.full)
        self._is_stale = True

    def act(self, action: ndarray) -> None:
        self._env.act(self._in_game[np.arange(self.num_envs), action])
        self._is_stale = True

    def observe(self) -> Observation:
        self._env.observe()
        if self._is_stale:
            self._show(0, self.num_envs)
            self._is_stale = False
        return self._seen

    def play(self, env: int, level: int) -> None:
        """As LevelControl says; the level is shown as the game is."""
        self._env.play(env, level)
        self._show(env, env + 1)

    def save(self) -> dict[str, ndarray]:
        """What the games save: how each is shown follows from its number."""
        state: dict[str, ndarray] = self._env.save()
        return state

    def restore(self, state: Mapping[str, ndarray]) -> None:
        self._env.restore(state)
        self._show(0, self.num_envs)

    def close(self) -> None:
        self._env.close()

    def _show(self, begin: int, end: int) -> None:
        """Bring games begin … end − 1 to `obs`."""
        for index, view in enumerate(self._symmetry.views):
            low, high = np.searchsorted(self._view, (index, index + 1)).clip(begin, end)
            if low < high:
                self._seen.obs[low:high] = self._symmetry.show(view, self._bare[low:high])
