"""The Gymnasium ids `expgen/maze`, … `expgen/minimaze`, registered as soon as both packages are imported.

Importing Gymnasium takes half a second, too long for `expgen --help`. If it is not imported yet, an import hook
registers the ids right after someone else imports it.
"""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

NAMESPACE = "expgen"


def register_ids() -> None:
    """Register every id that Gymnasium does not have yet."""
    import gymnasium

    from expgen.envs.procgen import GAMES

    names = {game: f"procgen:{game}" for game in GAMES} | {"minimaze": "minimaze"}
    for short, name in names.items():
        if f"{NAMESPACE}/{short}" not in gymnasium.registry:
            gymnasium.register(
                f"{NAMESPACE}/{short}",
                "expgen.envs.gymnasium_vector:GymnasiumSingleEnv",
                vector_entry_point="expgen.envs.gymnasium_vector:GymnasiumVectorEnv",
                kwargs={"env": name},
            )


def register_with_gymnasium() -> None:
    """Register the ids now if Gymnasium is imported, else when it is imported."""
    if "gymnasium" in sys.modules:
        register_ids()
    elif not any(isinstance(finder, _GymnasiumImportHook) for finder in sys.meta_path):
        sys.meta_path.insert(0, _GymnasiumImportHook())


class _GymnasiumImportHook:
    """A finder in `sys.meta_path` that makes the import of Gymnasium register the ids."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)  # the caller may only look for Gymnasium and import it later
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                sys.meta_path.remove(self)
                register_ids()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
