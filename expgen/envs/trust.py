"""Which modules an environment's name and options may import: those that the user has named, never those of a file.

`gymnasium:MODULE:ID` and the wrapper `MODULE:CLASS` import MODULE, and importing runs its code. A stranger's run folder
or agent.json may hold such names, so they count only where the user has said the same (`plugins`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from expgen.envs.wrappers import WRAPPERS, parse_wrappers
from expgen.errors import InputError
from expgen.plugins import is_trusted, trust


def trust_env(name: str, options: Mapping[str, Any]) -> None:
    """The user has named the environment and its options: the modules in them may be imported."""
    for module in _modules(name, options):
        trust(module)


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
