"""Weights in the form that kernels read: made anew at every use, or held as long as nobody trains.

A policy acts hundreds of times between two updates, and making the form takes a dozen launches each time.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from torch import nn

Form = TypeVar("Form")


class Prepared(Generic[Form]):
    """Called for the form of some weights: `held`, where there is one, else what `make` makes of them now."""

    def __init__(self, make: Callable[[], Form]) -> None:
        self.make = make
        self.held: Form | None = None

    def __call__(self) -> Form:
        return self.make() if self.held is None else self.held


def prepared_in(network: nn.Module) -> list[Prepared[Any]]:
    """All forms that the fast ways of `network` read (their attribute `prepared`)."""
    ways = [getattr(part, name, None) for part in network.modules() for name in ("encode", "scan")]
    return [form for way in ways for form in getattr(way, "prepared", ())]
