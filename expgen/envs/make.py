"""make_env: an environment from its name, or from what makes it.

`gymnasium:MODULE:ID` and the wrapper `MODULE:CLASS` import MODULE, and importing runs its code. A stranger's run folder
or agent.json may hold such names, so what a file names is made by build_env: of these modules it imports only what the
user has named too (`plugins`).
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from expgen.envs.levels import LevelSet
from expgen.envs.own_env import OWN_ENVS, build_own, env_as_name
from expgen.envs.procgen import GAMES
from expgen.envs.vec_env import VecEnv
from expgen.envs.wrappers import WRAPPERS, load_wrapper, parse_wrappers, wrappers_text
from expgen.errors import InputError, check_choice
from expgen.plugins import is_trusted, load_entry_points, trust
from expgen.settings import LAST_SEED, check_integer, check_plain_fields, check_type, to_python_number

MOST_ENVS = 2**16  # games side by side, and threads that step them
FAMILIES = ("minimaze", "procgen:GAME", "gymnasium:ID", "envpool:ID")
_FAMILY_NAMES = tuple(family.partition(":")[0] for family in FAMILIES)
_GYMNASIUM_ID = re.compile(r"[^\s,]+-v\d+")


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
    for module in _modules(name, options):
        trust(module)
    return name, options


def full_name(name: str, field: str = "--env") -> str:
    """The name that files keep: `maze` → `procgen:maze`, `CartPole-v1` → `gymnasium:CartPole-v1`, others as they are.

    An InputError names `field` where it means nothing.
    """
    family, colon, inside = name.partition(":")
    if name not in (*_FAMILY_NAMES, *GAMES, *OWN_ENVS) and family not in _FAMILY_NAMES:
        load_entry_points()
    if name in OWN_ENVS or name == "minimaze":
        return name
    if name in GAMES:
        return f"procgen:{name}"
    if family == "procgen" and colon:
        return f"procgen:{check_choice('GAME', inside, GAMES)}"
    if family in ("gymnasium", "envpool") and inside:
        return name
    if family not in _FAMILY_NAMES and _GYMNASIUM_ID.fullmatch(name):
        return f"gymnasium:{name}"
    known = ", ".join((*(GAMES if field == "GAME" else ()), *FAMILIES, *OWN_ENVS))
    raise InputError(f"{field} is {name!r}; accepted: {known}, or what --import MODULE registers")


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
    num_envs = check_integer("num_envs", num_envs, 1, MOST_ENVS)
    seed, threads = check_integer("seed", seed, 0, LAST_SEED), check_integer("threads", threads, 0, MOST_ENVS)
    check_type("full_view", full_view, bool, "True or False")
    name = full_name(name)
    family, _, game = name.partition(":")
    level_set = LevelSet.parse(levels)
    check_trusted(name, options)
    wrappers = parse_wrappers(options.pop(WRAPPERS)) if WRAPPERS in options else []
    classes = [load_wrapper(wrapper) for wrapper in wrappers]

    def wrap(env: Any) -> Any:
        for put_on, wrapper in zip(classes, wrappers, strict=True):
            try:
                env = put_on(env, **wrapper.arguments)
            except (TypeError, ValueError, AssertionError) as error:
                reason = " ".join(str(error).split())
                raise InputError(f"--wrapper {wrapper.name} does not fit {name!r}: {reason}") from error
        return env

    if name in OWN_ENVS:
        games = {"levels": level_set, "num_envs": num_envs, "seed": seed, "threads": threads, "full_view": full_view}
        return build_own(name, games, wrap if wrappers else None, options)
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
    options = {option: to_python_number(value) for option, value in options.items()}
    check_plain_fields(kind, options, "options", word="option")
    for option, value in options.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{option} is {value}; accepted: a finite number")
    return kind(**options)


def check_trusted(name: str, options: Mapping[str, Any]) -> None:
    """InputError if the environment `name` or its `options` would import a module that the user has not named."""
    for module in _modules(name, options):
        if not is_trusted(module):
            what = f"the environment {name!r} would import the module {module!r}, which only a file names"
            raise InputError(f"{what}; accepted: --import {module}, if you trust it")


def _modules(name: str, options: Mapping[str, Any]) -> Iterator[str]:
    family, _, rest = name.partition(":")
    for option, value in options.items():
        if option == WRAPPERS:
            yield from (wrapper.module for wrapper in parse_wrappers(value))
        elif family == "gymnasium" and isinstance(value, str) and ":" in value:
            yield value.partition(":")[0]
    if family == "gymnasium" and ":" in rest:
        yield rest.partition(":")[0]
