"""Environments of the user: those registered with `register_env`, and those passed to a call instead of a name."""

import contextlib
import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from expgen.envs.gymnasium_env import is_gymnasium
from expgen.envs.levels import LevelSet
from expgen.envs.procgen import GAMES
from expgen.errors import InputError, error_line
from expgen.plugins import add, caller, is_local
from expgen.text import short_repr

Factory = Callable[..., Any]

OWN_ENVS: dict[str, Factory] = {}
_ARGUMENTS = ("levels", "num_envs", "seed", "threads", "full_view")  # passed to factories of a VecEnv
_ONE_GAME = (LevelSet(None), 1, 0, 1, False)  # arguments for an environment that is only made to learn its class
_RESERVED = ("minimaze", "procgen", "gymnasium", "envpool", *GAMES)
_ACCEPTED = "accepted: a name, a Gymnasium environment, or a class or function that makes environments"


def register_env(name: str, factory: Factory) -> None:
    """Register `factory` under `name` for `--env NAME`, `make_env(NAME)` and run folders.

    name: letters, digits, `_`, `.` and `-`.
    factory: a class or function. If it has a parameter `num_envs`, it must return a VecEnv of all games, and is called
        with those of `levels`, `num_envs`, `seed`, `threads` and `full_view` that it has as parameters. Otherwise it
        must return one Gymnasium environment, and is called once per game. Options are passed as further keywords.
    """
    register_env_from(name, factory, caller())


def env_as_name(env: Any) -> str:
    """Return the name of the `env` argument of a call; register it under the name of its class or function if new.

    A Gymnasium environment is copied for each game and never stepped itself.
    """
    if isinstance(env, str):
        return env
    if is_gymnasium(env):
        return _register_locally(type(env.unwrapped).__name__, _copy_factory(env))
    if callable(getattr(env, "observe", None)) and not isinstance(env, type):
        raise InputError(f"env is {short_repr(env)}, an instance of a VecEnv; accepted: its class or a function")
    if not callable(env):
        raise InputError(f"env is {short_repr(env)}; {_ACCEPTED}")
    for name, factory in OWN_ENVS.items():
        if factory is env:
            return name
    name = getattr(env, "__name__", "<lambda>")
    if not name.isidentifier():  # a lambda or a partial: use the class name of the environment it makes
        made = _call(env, name, _ONE_GAME if takes_num_envs(env) else (), {})
        name = type(getattr(made, "unwrapped", made)).__name__
        with contextlib.suppress(AttributeError):
            made.close()
    return _register_locally(name, env)


def takes_num_envs(factory: Factory) -> bool:
    """Return whether `factory` makes a VecEnv of all games; otherwise it makes one Gymnasium environment."""
    return "num_envs" in _parameters(factory)


def make_own_env(name: str, options: Mapping[str, Any], *arguments: Any) -> Any:
    """Make one game of the registered environment `name`, or a VecEnv if `arguments` are given.

    arguments: values of _ARGUMENTS, of which the factory gets those that it has as parameters.
    """
    env = _call(OWN_ENVS[name], name, arguments, options)
    missing = [part for part in ("spec", "levels", "num_envs", "act", "observe", "close") if not hasattr(env, part)]
    if arguments and missing:
        what = f"--env is {name!r}, which takes num_envs but makes {short_repr(env)} without {', '.join(missing)}"
        raise InputError(f"{what}; accepted: a VecEnv as described in docs/environments.md")
    return env


def _register_locally(name: str, factory: Factory) -> str:
    """Register `factory` for this process only; return `name`, or `name-2` if a module has registered that name."""
    name = name.lstrip("_") or "env"
    if name in _RESERVED or (name in OWN_ENVS and not is_local(name)):
        name = f"{name}-2"
    register_env_from(name, factory, None)
    return name


def _copy_factory(env: Any) -> Factory:
    """Return a function that copies `env`."""

    def make_copy() -> Any:
        try:
            return copy.deepcopy(env)
        except Exception as error:  # user code may raise anything
            what = f"env is {short_repr(env)}, which cannot be copied ({error_line(error)})"
            raise InputError(f"{what}; accepted: a function that makes it") from error

    return make_copy


def register_env_from(name: str, factory: Factory, origin: str | None) -> None:
    """Like `register_env`; `origin` is the registering module, None for names known to this process only."""
    if not callable(factory):
        raise InputError(f"factory of the environment {name!r} is {short_repr(factory)}; accepted: a class or function")
    if name in _RESERVED:
        raise InputError(f"name of the environment is {name!r}, which is reserved; accepted: another name")
    add(OWN_ENVS, "environment", name, factory, origin)


def _call(factory: Factory, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """Call `factory`; raise InputError for options that it does not take, but let errors inside it through."""
    parameters = _parameters(factory)
    keywords = {key: value for key, value in zip(_ARGUMENTS, arguments) if key in parameters} | dict(options)
    try:
        inspect.signature(factory).bind(**keywords)
    except TypeError as error:
        raise InputError(f"--env is {name!r}: {error}; accepted options: {', '.join(parameters) or 'none'}") from None
    except ValueError:  # some built-in classes have no signature
        try:
            return factory(**keywords)
        except TypeError as error:
            raise InputError(f"--env is {name!r}: {error}; {_ACCEPTED}") from None
    return factory(**keywords)


def _parameters(factory: Factory) -> list[str]:
    try:
        return list(inspect.signature(factory).parameters)
    except (TypeError, ValueError):
        return []
