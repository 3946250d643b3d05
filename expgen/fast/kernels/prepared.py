"""Weights in the form that kernels read: made anew at every use, or held as long as nobody trains.

A policy acts hundreds of times between two updates, and making the form takes a dozen launches each time.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from torch import nn

Form = TypeVar("Form")


class Prepared(Generic[Form]):
    """Weights as kernels read them: `held` where it is set, else converted by `make` at every call."""

    def __init__(self, make: Callable[[], Form]) -> None:
        self.make = make
        self.held: Form | None = None

    def __call__(self) -> Form:
        return self.make() if self.held is None else self.held


def prepared_in(network: nn.Module) -> list[Prepared[Any]]:
    """Every Prepared of the fast encoders and GRUs in `network`."""
    ways = [getattr(part, name, None) for part in network.modules() for name in ("encode", "scan")]
    return [form for way in ways for form in getattr(way, "prepared", ())]
