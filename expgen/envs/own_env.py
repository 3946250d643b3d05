"""Environments of the user's own: what `register_env` names, and what a call is given in place of a name."""

import contextlib
import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from expgen.envs.gymnasium_env import GymnasiumEnv, is_gymnasium
from expgen.envs.levels import LevelSet
from expgen.envs.procgen import GAMES
from expgen.envs.vec_env import VecEnv
from expgen.envs.wrappers import WRAPPERS
from expgen.errors import InputError, error_line
from expgen.plugins import add, caller, is_local
from expgen.text import short_repr

Factory = Callable[..., Any]

OWN_ENVS: dict[str, Factory] = {}
_ONE_GAME = {"levels": LevelSet(None), "num_envs": 1, "seed": 0, "threads": 1, "full_view": False}
_RESERVED = ("minimaze", "procgen", "gymnasium", "envpool", *GAMES)
_ACCEPTED = "accepted: a name, a Gymnasium environment, or a class or function that makes environments"


def register_env(name: str, factory: Factory) -> None:
    """Let `--env NAME`, `make_env(NAME)` and run folders mean what `factory` makes.

    name: letters, digits, `_`, `.` and `-`.
    factory: a class or function. One that takes `num_envs` makes all games at once, a VecEnv, and is called with those
        of `levels`, `num_envs`, `seed`, `threads` and `full_view` that it takes. Any other makes one Gymnasium
        environment and is called once for each game. Options are further keywords of both.
    """
    register_env_from(name, factory, caller())


def env_as_name(env: Any) -> str:
    """The name of what a call was given as its environment; what has none yet gets that of its class or function.

    A Gymnasium environment stands for copies of it: none of its own steps are taken.
    """
    if isinstance(env, str):
        return env
    if is_gymnasium(env):
        return _with_free_name(type(env.unwrapped).__name__, _copier(env))
    if callable(getattr(env, "observe", None)) and not isinstance(env, type):
        raise InputError(f"env is {short_repr(env)}, which is made already; accepted: its class, or what makes it")
    if not callable(env):
        raise InputError(f"env is {short_repr(env)}; {_ACCEPTED}")
    for name, factory in OWN_ENVS.items():
        if factory is env:
            return name
    name = getattr(env, "__name__", "<lambda>")
    if not name.isidentifier():  # a lambda or a partial: what it makes has a name
        made = _call(env, name, _taken(env, _ONE_GAME))
        name = type(getattr(made, "unwrapped", made)).__name__
        with contextlib.suppress(AttributeError):
            made.close()
    return _with_free_name(name, env)


def build_own(
    name: str, games: Mapping[str, Any], wrap: Callable[[Any], Any] | None, options: Mapping[str, Any]
) -> VecEnv:
    """The registered environment `name`; `games` are arguments of `build_env`, `wrap` puts wrappers on one game."""
    factory = OWN_ENVS[name]
    taken = _taken(factory, games)
    if not taken:
        put_on = wrap or (lambda env: env)
        which = (games["levels"], games["num_envs"], games["seed"])
        return GymnasiumEnv(name, lambda: put_on(_call(factory, name, options)), *which)
    if wrap is not None:
        raise InputError(f"--env is {name!r}, a VecEnv; accepted with {WRAPPERS}: Gymnasium environments")
    env = _call(factory, name, {**taken, **options})
    missing = [part for part in ("spec", "levels", "num_envs", "act", "observe", "close") if not hasattr(env, part)]
    if missing:
        what = f"--env is {name!r}, which takes num_envs but makes {short_repr(env)} without {', '.join(missing)}"
        raise InputError(f"{what}; accepted: a VecEnv, as docs/environments.md says")
    return env


def _with_free_name(name: str, factory: Factory) -> str:
    """Register `factory` for this process alone, under a name that no module's environment has."""
    name = name.lstrip("_") or "env"
    free = f"{name}-2" if name in _RESERVED or (name in OWN_ENVS and not is_local(name)) else name
    register_env_from(free, factory, None)
    return free


def _copier(env: Any) -> Factory:
    """Makes copies of one environment."""

    def copied() -> Any:
        try:
            return copy.deepcopy(env)
        except Exception as error:  # whatever its parts do when they are copied
            what = f"env is {short_repr(env)}, which cannot be copied ({error_line(error)})"
            raise InputError(f"{what}; accepted: a function that makes it") from error

    return copied


def register_env_from(name: str, factory: Factory, origin: str | None) -> None:
    """As `register_env`; `origin` is the module that registers it, None for a name of this process alone."""
    if not callable(factory):
        raise InputError(f"factory of the environment {name!r} is {short_repr(factory)}; accepted: a class or function")
    if name in _RESERVED:
        raise InputError(f"name of the environment is {name!r}, which means another; accepted: another name")
    add(OWN_ENVS, "environment", name, factory, origin)


def _call(factory: Factory, name: str, keywords: Mapping[str, Any]) -> Any:
    """Make it; keywords that it does not take are bad input, what goes wrong inside is not."""
    try:
        inspect.signature(factory).bind(**keywords)
    except TypeError as error:
        takes = ", ".join(_parameters(factory)) or "none"
        raise InputError(f"--env is {name!r}: {error}; accepted options: {takes}") from None
    except ValueError:  # built-in code has no signature
        try:
            return factory(**keywords)
        except TypeError as error:
            raise InputError(f"--env is {name!r}: {error}; {_ACCEPTED}") from None
    return factory(**keywords)


def _taken(factory: Factory, games: Mapping[str, Any]) -> dict[str, Any]:
    """What of `games` a factory that makes all of them at once takes; nothing for one of single games."""
    names = _parameters(factory)
    return {name: value for name, value in games.items() if name in names} if "num_envs" in names else {}


def _parameters(factory: Factory) -> list[str]:
    try:
        return list(inspect.signature(factory).parameters)
    except (TypeError, ValueError):
        return []
