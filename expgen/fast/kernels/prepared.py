"""Weights in the form that kernels read: converted at every use, or cached while they do not change.

A policy acts hundreds of times between two updates, and each conversion takes a dozen launches.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from torch import nn

Form = TypeVar("Form")


class Prepared(Generic[Form]):
    """Returns `held` if it is set, otherwise the weights converted by `make`."""

    def __init__(self, make: Callable[[], Form]) -> None:
        self.make = make
        self.held: Form | None = None

    def __call__(self) -> Form:
        return self.make() if self.held is None else self.held


def prepared_in(network: nn.Module) -> list[Prepared[Any]]:
    """Return every Prepared of the fast encoders and GRUs in `network`."""
    functions = [getattr(part, name, None) for part in network.modules() for name in ("encode", "scan")]
    return [form for function in functions for form in getattr(function, "prepared", ())]
