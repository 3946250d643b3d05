"""make_env: an environment from its name. What a file names is made by build_env, which imports no module for it."""

import math
from collections.abc import Iterable
from typing import Any, get_type_hints

from expgen.envs.levels import LevelSet
from expgen.envs.trust import check_trusted, trust_env
from expgen.envs.vec_env import VecEnv
from expgen.errors import InputError, check_range
from expgen.settings import is_of_type

FAMILIES = ("minimaze", "procgen:GAME", "gymnasium:ID", "envpool:ID")


def make_env(
    name: str,
    levels: LevelSet | str | int | Iterable[int] = "all",
    num_envs: int = 64,
    seed: int = 0,
    threads: int = 1,
    full_view: bool = False,
    **options: Any,
) -> VecEnv:
    """As `build_env`, for a `name` that the user chose: `gymnasium:MODULE:ID` may import its module."""
    trust_env(name)
    return build_env(name, levels, num_envs, seed, threads, full_view, **options)


def build_env(
    name: str,
    levels: LevelSet | str | int | Iterable[int] = "all",
    num_envs: int = 64,
    seed: int = 0,
    threads: int = 1,
    full_view: bool = False,
    **options: Any,
) -> VecEnv:
    """`num_envs` games of `name` (one of FAMILIES) on the given levels, drawn in an order that `seed` fixes.

    `threads` is how many the environment may step with; `full_view` asks for the uncentred view the intrinsic reward
    needs (a second environment where the game centres its agent); `options` are fields of the environment's config.
    """
    check_range("num_envs", num_envs, 1)
    family, _, game = name.partition(":")
    level_set = LevelSet.parse(levels)
    if family == "minimaze" and not game:
        from expgen.envs.minimaze import Minimaze, MinimazeConfig

        return Minimaze(level_set, num_envs, seed, _config(MinimazeConfig, options))
    if family == "procgen" and game:
        from expgen.envs.procgen import ProcgenConfig, make_procgen

        config = _config(ProcgenConfig, {"game": game, **options})
        return make_procgen(config, level_set, num_envs, seed, threads, full_view)
    if family == "gymnasium" and game:
        from expgen.envs.gymnasium_env import GymnasiumEnv

        check_trusted(name, options)
        return GymnasiumEnv(game, level_set, num_envs, seed, options)
    if family == "envpool" and game:
        from expgen.envs.envpool_env import EnvpoolEnv

        return EnvpoolEnv(game, level_set, num_envs, seed, threads, options)
    raise InputError(f"--env is {name!r}; accepted: {', '.join(FAMILIES)}")


def _config(kind: type, options: dict[str, Any]) -> Any:
    known = get_type_hints(kind)
    for option, value in options.items():
        if option not in known:
            raise InputError(f"option {option!r} is unknown; accepted: {', '.join(known)}")
        if not is_of_type(value, known[option]):
            raise InputError(f"{option} is {value!r}; accepted: a value of type {known[option].__name__}")
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{option} is {value}; accepted: a finite number")
    return kind(**options)
