"""How an algorithm's steps are carried out: as they are written, or faster where `fast.accelerate` knows how."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

Result = TypeVar("Result")


class Runner(Protocol):
    """Calls functions of an algorithm, or replays what they did.

    Such a function depends on its inputs and on what `Algorithm.state` holds, and changes the latter alone, in place.
    Its inputs are tensors, tuples of them, or things that stay what they are (a member's number, a network); it returns
    a tensor, or scalars by name. Shapes follow from those of its inputs; it draws no random numbers and reads no value
    on the host.
    """

    def __call__(self, function: Callable[..., Result], *inputs: Any) -> Result:
        """What `function` makes of `inputs`."""

    def forget(self) -> None:
        """Called when weights or optimisers are loaded, which then may be other tensors."""


class AsWritten:
    """A Runner that just calls."""

    def __call__(self, function: Callable[..., Result], *inputs: Any) -> Result:
        return function(*inputs)

    def forget(self) -> None:
        """There is nothing to forget."""


@runtime_checkable
class HasRunner(Protocol):
    """An algorithm whose steps go through a Runner, which may be replaced."""

    run: Runner
