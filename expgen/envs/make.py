"""make_env: an environment from its name, or from what makes it.

What a file names is made by build_env, which imports no module for it.
"""

import math
from collections.abc import Iterable
from typing import Any, get_type_hints

from expgen.envs.levels import LevelSet
from expgen.envs.names import full_name
from expgen.envs.own_env import OWN_ENVS, build_own, env_as_name
from expgen.envs.trust import check_trusted, trust_env
from expgen.envs.vec_env import VecEnv
from expgen.envs.wrappers import WRAPPERS, load_wrappers, parse_wrappers, wrappers_text
from expgen.errors import InputError
from expgen.settings import LAST_SEED, check_type, check_whole, is_of_type, plain_number
from expgen.text import short_repr

MOST_ENVS = 2**16  # games side by side, and threads that step them


def make_env(
    env: Any,
    levels: LevelSet | str | int | Iterable[int] = "all",
    num_envs: int = 64,
    seed: int = 0,
    threads: int = 1,
    full_view: bool = False,
    **options: Any,
) -> VecEnv:
    """`num_envs` games of one kind, stepped together.

    env: a name (`maze`, `minimaze`, `CartPole-v1`, `gymnasium:MODULE:ID`, `envpool:ID`, or what `register_env` was
        given), a Gymnasium environment, or a class or function that makes environments, as `register_env` takes.
    levels: those that may be played; drawn in an order that `seed` fixes.
    threads: how many the environment may step with.
    full_view: show the uncentred view too, which the intrinsic reward needs where a game centres its agent.
    options: of the environment; `wrappers` is a list of Gymnasium wrappers, texts (`MODULE:CLASS`) or classes.
    """
    name, options = named_env(env, options)
    return build_env(name, levels, num_envs, seed, threads, full_view, **options)


def named_env(env: Any, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What the user gave as environment and options, as files keep them; the modules that they name may be imported."""
    name = full_name(env_as_name(env))
    if WRAPPERS in options:
        options = {**options, WRAPPERS: wrappers_text(options[WRAPPERS])}
    trust_env(name, options)
    return name, options


def build_env(
    name: str,
    levels: LevelSet | str | int | Iterable[int] = "all",
    num_envs: int = 64,
    seed: int = 0,
    threads: int = 1,
    full_view: bool = False,
    **options: Any,
) -> VecEnv:
    """As `make_env`, for what a file may name: no module is imported that the user has not named."""
    num_envs = check_whole("num_envs", num_envs, 1, MOST_ENVS)
    seed, threads = check_whole("seed", seed, 0, LAST_SEED), check_whole("threads", threads, 0, MOST_ENVS)
    check_type("full_view", full_view, bool, "True or False")
    name = full_name(name)
    family, _, game = name.partition(":")
    level_set = LevelSet.parse(levels)
    check_trusted(name, options)
    wrappers = load_wrappers(parse_wrappers(options.pop(WRAPPERS))) if WRAPPERS in options else []

    def wrap(env: Any) -> Any:
        for wrapper, arguments in wrappers:
            try:
                env = wrapper(env, **arguments)
            except (TypeError, ValueError, AssertionError) as error:
                reason = " ".join(str(error).split())
                raise InputError(f"--wrapper {wrapper.__name__} does not fit {name!r}: {reason}") from error
        return env

    if name in OWN_ENVS:
        return build_own(name, level_set, num_envs, seed, threads, full_view, wrap if wrappers else None, options)
    if family == "gymnasium":
        from expgen.envs.gymnasium_env import GymnasiumEnv, make_registered

        return GymnasiumEnv(name, lambda: wrap(make_registered(game, options)), level_set, num_envs, seed)
    if wrappers:
        raise InputError(f"--env is {name!r}; accepted with --wrapper: Gymnasium environments")
    if family == "envpool":
        from expgen.envs.envpool_env import EnvpoolEnv

        return EnvpoolEnv(game, level_set, num_envs, seed, threads, options)
    if family == "procgen":
        from expgen.envs.procgen import ProcgenConfig, make_procgen

        config = _config(ProcgenConfig, {"game": game, **options})
        return make_procgen(config, level_set, num_envs, seed, threads, full_view)
    from expgen.envs.minimaze import Minimaze, MinimazeConfig

    return Minimaze(level_set, num_envs, seed, _config(MinimazeConfig, options))


def _config(kind: type, options: dict[str, Any]) -> Any:
    known = get_type_hints(kind)
    options = {option: plain_number(value) for option, value in options.items()}
    for option, value in options.items():
        if option not in known:
            raise InputError(f"option {option!r} is unknown; accepted: {', '.join(known)}")
        if not is_of_type(value, known[option]):
            accepted = f"a value of type {known[option].__name__}"
            raise InputError(f"{option} is {short_repr(value)}; accepted: {accepted}")
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{option} is {value}; accepted: a finite number")
    return kind(**options)
