"""Graphs: record what a function launches and replay it, one call of the host instead of hundreds.

A graph reads and writes fixed memory. A minibatch names a rollout, which is allocated once, so a graph gathers it from
where it lies; tensors that a function is given are copied to a place of their own before each replay. A function is
recorded once for every shape of its inputs. Recording runs it a few times, so the algorithm is put back afterwards to
what it was.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor

from expgen.algorithms.protocol import Algorithm

WARM_UPS = 3  # runs before a capture, in which libraries choose their kernels and allocate
Result = TypeVar("Result")
Output = TypeVar("Output")
Capture = Callable[[Callable[[], Any]], tuple[Any, Callable[[], None]]]  # the output's memory, and what fills it again


def capture_on_gpu(body: Callable[[], Output]) -> tuple[Output, Callable[[], None]]:
    """Capture `body` as a CUDA graph on the current stream; on one of its own if that is the default stream."""
    for _ in range(WARM_UPS):
        body()
    stream = torch.cuda.current_stream()
    graph = torch.cuda.CUDAGraph()
    is_default = stream == torch.cuda.default_stream()
    with torch.cuda.graph(graph, stream=None if is_default else stream, capture_error_mode="relaxed"):
        output = body()
    return output, graph.replay


class Recording:
    """One function for inputs of one shape; it returns a tensor, a tuple of them, or scalars by name."""

    def __init__(self, function: Callable[..., Any], inputs: tuple[Any, ...], capture: Capture) -> None:
        self.memory = [tensor.clone() for tensor in tensors_in(inputs)]
        self.names: list[str] | None = None  # of the scalars, where the function returns these
        fixed = _with_tensors(inputs, iter(self.memory))

        def body() -> Any:
            result = function(*_with_tensors(fixed, iter(self.memory)))  # anew: a minibatch keeps what it has gathered
            if not isinstance(result, dict):
                return result
            self.names = list(result)
            return torch.stack(list(result.values()))  # one output to copy

        self.output, self.replay = capture(body)

    def __call__(self, inputs: tuple[Any, ...]) -> Any:
        for memory, tensor in zip(self.memory, tensors_in(inputs), strict=True):
            memory.copy_(tensor)
        self.replay()
        output = _with_tensors(self.output, (part.clone() for part in tensors_in(self.output)))  # it is overwritten
        return output if self.names is None else dict(zip(self.names, output.unbind(), strict=True))


class Graphs:
    """Functions of `algorithm`, recorded when first called with inputs of some shape and replayed from then on.

    Such a function depends on its inputs and on what `Algorithm.state` holds, and changes the latter alone, in place.
    Its inputs are tensors, tuples and dataclasses of them, or things that stay what they are (a rollout, a member's
    number); it returns a tensor, or scalars by name. Shapes follow from those of its inputs; it draws no random numbers
    and reads no value on the host.
    """

    def __init__(self, algorithm: Algorithm, capture: Capture = capture_on_gpu) -> None:
        self.algorithm, self.capture = algorithm, capture
        self.recordings: dict[tuple[Any, ...], Recording] = {}

    def __call__(self, function: Callable[..., Result], *inputs: Any) -> Result:
        """Call `function` with `inputs`: record it the first time, replay it afterwards."""
        shapes = ((leaf.shape, leaf.dtype) if isinstance(leaf, Tensor) else leaf for leaf in leaves(inputs))
        key = (function, *shapes)
        if key not in self.recordings:
            before = {name: tensor.clone() for name, tensor in self.algorithm.state().items()}
            self.recordings[key] = Recording(function, inputs, self.capture)
            self._put_back(before)
        return self.recordings[key](inputs)

    @torch.no_grad()
    def _put_back(self, before: dict[str, Tensor]) -> None:
        """Restore the algorithm's tensors to `before`, in place; those that an optimiser has made since become zero."""
        for name, tensor in self.algorithm.state().items():
            if name in before:
                tensor.copy_(before[name])
            else:
                tensor.zero_()


def leaves(inputs: Any) -> list[Any]:
    """What is left of `inputs` when tuples and dataclasses are opened, in order."""
    parts = _parts(inputs)
    return [inputs] if parts is None else [leaf for part in parts for leaf in leaves(part)]


def tensors_in(inputs: Any) -> list[Tensor]:
    """The tensors among the leaves of `inputs`."""
    return [leaf for leaf in leaves(inputs) if isinstance(leaf, Tensor)]


def _with_tensors(inputs: Any, tensors: Iterator[Tensor]) -> Any:
    """`inputs` with other tensors in place of theirs."""
    if isinstance(inputs, Tensor):
        return next(tensors)
    if (parts := _parts(inputs)) is None:
        return inputs
    parts = [_with_tensors(part, tensors) for part in parts]
    return tuple(parts) if type(inputs) is tuple else type(inputs)(*parts)


def _parts(inputs: Any) -> list[Any] | None:
    """What a tuple or a dataclass is made of; None for anything else."""
    if isinstance(inputs, tuple):
        return list(inputs)
    if dataclasses.is_dataclass(inputs):
        return [getattr(inputs, field.name) for field in dataclasses.fields(inputs)]
    return None
