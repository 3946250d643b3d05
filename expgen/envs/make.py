"""make_env: build an environment from its name, or from a class, function or Gymnasium environment.

`gymnasium:MODULE:ID` and the wrapper `MODULE:CLASS` import MODULE, which runs its code. Names in a run folder or
agent.json are not trusted: they go to build_env, which imports only modules that the user has named (`plugins`).
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from expgen.envs.envpool_env import EnvpoolEnv
from expgen.envs.gymnasium_env import GymnasiumEnv, make_registered
from expgen.envs.levels import LevelSet
from expgen.envs.minimaze import Minimaze, MinimazeConfig
from expgen.envs.own_env import OWN_ENVS, env_as_name, make_own_env, takes_num_envs
from expgen.envs.procgen import GAMES, ProcgenConfig, make_procgen
from expgen.envs.vec_env import VecEnv
from expgen.envs.wrappers import WRAPPERS, apply_wrappers, load_wrappers, parse_wrappers, wrappers_text
from expgen.errors import InputError, check_choice
from expgen.plugins import is_trusted, load_entry_points, trust
from expgen.settings import LAST_SEED, check_integer, check_plain_fields, check_type, to_python_number

MAX_ENVS = 2**16  # games of one environment, and threads that step them
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
    """Make `num_envs` games of one kind, stepped together.

    env: a name (`maze`, `minimaze`, `CartPole-v1`, `gymnasium:MODULE:ID`, `envpool:ID`, or a name given to
        `register_env`), a Gymnasium environment, or a class or function as `register_env` takes.
    levels: the level set to play.
    seed: random seed for the order of levels.
    threads: number of threads that step the games.
    full_view: also provide the uncentred view; the intrinsic reward needs it in games whose view follows the agent.
    options: options of the environment; `wrappers` is a list of Gymnasium wrappers, as `MODULE:CLASS` or classes.
    """
    name, options = resolve_env(env, options)
    return build_env(name, levels, num_envs, seed, threads, full_view, **options)


def resolve_env(env: Any, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the user's `env` and `options` as a config file stores them, and trust the modules that they name."""
    name = full_name(env_as_name(env))
    if WRAPPERS in options:
        options = {**options, WRAPPERS: wrappers_text(options[WRAPPERS])}
    for module in _modules(name, options):
        trust(module)
    return name, options


def full_name(name: str, field: str = "--env") -> str:
    """Return the name that files store: `maze` → `procgen:maze`, `CartPole-v1` → `gymnasium:CartPole-v1`.

    Full names are returned unchanged. Raise InputError, which names `field`, if `name` is unknown.
    """
    family, colon, inside = name.partition(":")
    if family not in _FAMILY_NAMES and name not in (*GAMES, *OWN_ENVS):
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
    raise InputError(f"{field} is {name!r}; accepted: {known}, or a name registered by --import MODULE")


def build_env(
    name: str,
    levels: LevelSet | str | int | Iterable[int] = "all",
    num_envs: int = 64,
    seed: int = 0,
    threads: int = 1,
    full_view: bool = False,
    **options: Any,
) -> VecEnv:
    """Like `make_env`, for names and options from a file: import no module that the user has not named."""
    num_envs = check_integer("num_envs", num_envs, 1, MAX_ENVS)
    seed, threads = check_integer("seed", seed, 0, LAST_SEED), check_integer("threads", threads, 0, MAX_ENVS)
    check_type("full_view", full_view, bool, "True or False")
    name = full_name(name)
    family, _, game = name.partition(":")
    level_set = LevelSet.parse(levels)
    check_trusted(name, options)
    wrappers = load_wrappers(options.pop(WRAPPERS)) if WRAPPERS in options else []
    if family == "gymnasium" or (name in OWN_ENVS and not takes_num_envs(OWN_ENVS[name])):

        def make_game() -> Any:
            env = make_own_env(name, options) if name in OWN_ENVS else make_registered(game, options)
            return apply_wrappers(wrappers, env, name)

        return GymnasiumEnv(name, make_game, level_set, num_envs, seed)
    if wrappers:
        raise InputError(f"--env is {name!r}; accepted with --wrapper: Gymnasium environments")
    if name in OWN_ENVS:
        return make_own_env(name, options, level_set, num_envs, seed, threads, full_view)
    if family == "envpool":
        return EnvpoolEnv(game, level_set, num_envs, seed, threads, options)
    if family == "procgen":
        config = _config(ProcgenConfig, {"game": game, **options})
        return make_procgen(config, level_set, num_envs, seed, threads, full_view)
    return Minimaze(level_set, num_envs, seed, _config(MinimazeConfig, options))


def _config(kind: type, options: dict[str, Any]) -> Any:
    options = {option: to_python_number(value) for option, value in options.items()}
    check_plain_fields(kind, options, "options", word="option")
    for option, value in options.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{option} is {value}; accepted: a finite number")
    return kind(**options)


def check_trusted(name: str, options: Mapping[str, Any]) -> None:
    """Raise InputError if environment `name` with `options` would import a module that the user has not named."""
    for module in _modules(name, options):
        if not is_trusted(module):
            what = f"the environment {name!r} would import the module {module!r}, named only in a file"
            raise InputError(f"{what}; accepted: --import {module}, if you trust it")


def _modules(name: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the modules that making environment `name` with `options` imports."""
    family, _, rest = name.partition(":")
    for option, value in options.items():
        if option == WRAPPERS:
            yield from (wrapper.module for wrapper in parse_wrappers(value))
        elif family == "gymnasium" and isinstance(value, str) and ":" in value:
            yield value.partition(":")[0]
    if family == "gymnasium" and ":" in rest:
        yield rest.partition(":")[0]
