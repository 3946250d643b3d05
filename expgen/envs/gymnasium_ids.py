"""The ids `expgen/maze`, … `expgen/minimaze`, which Gymnasium knows once `expgen` is imported, before it or after.

Importing Gymnasium takes half a second, too long for `expgen --help`: where it is not there yet, the ids are registered
right after whoever needs it imports it.
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
    """Register the ids now if Gymnasium is imported, else as soon as it is."""
    if "gymnasium" in sys.modules:
        register_ids()
    elif not any(isinstance(finder, _AfterGymnasium) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterGymnasium())


class _AfterGymnasium:
    """Finds Gymnasium as Python would, and has the ids registered once it is imported."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)  # who asks where Gymnasium is need not import it
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def then_register(module: ModuleType) -> None:
                execute(module)
                sys.meta_path.remove(self)
                register_ids()

            spec.loader.exec_module = then_register  # type: ignore[method-assign]
        return spec
