"""Graphs: record the kernel launches of a function and replay them, with one host call instead of hundreds.

A graph reads and writes fixed memory. A minibatch refers to a rollout, which is allocated once, so a graph gathers from
it directly; other input tensors are copied to buffers of the graph before each replay. A function is recorded once for
every shape of its inputs. RecordedFunction runs it a few times, so the algorithm's state is restored afterwards.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor

from expgen.algorithms.protocol import Algorithm

WARM_UPS = 3  # calls before a capture, in which libraries choose kernels and allocate memory
Result = TypeVar("Result")
Output = TypeVar("Output")
Capture = Callable[[Callable[[], Any]], tuple[Any, Callable[[], None]]]  # returns output buffers and a replay function


def capture_on_gpu(body: Callable[[], Output]) -> tuple[Output, Callable[[], None]]:
    """Capture `body` as a CUDA graph on the current stream; on a new stream if that is the default stream."""
    for _ in range(WARM_UPS):
        body()
    stream = torch.cuda.current_stream()
    graph = torch.cuda.CUDAGraph()
    is_default = stream == torch.cuda.default_stream()
    with torch.cuda.graph(graph, stream=None if is_default else stream, capture_error_mode="relaxed"):
        output = body()
    return output, graph.replay


class RecordedFunction:
    """A recorded function for inputs of one shape; it returns a tensor, a tuple of tensors, or scalars by name."""

    def __init__(self, function: Callable[..., Any], inputs: tuple[Any, ...], capture: Capture) -> None:
        self.buffers = [tensor.clone() for tensor in tensors_in(inputs)]
        self.names: list[str] | None = None  # of the scalars, if the function returns those
        fixed = _with_tensors(inputs, iter(self.buffers))

        def body() -> Any:
            result = function(*_with_tensors(fixed, iter(self.buffers)))  # copies: a minibatch caches what it gathers
            if not isinstance(result, dict):
                return result
            self.names = list(result)
            return torch.stack(list(result.values()))  # one output to copy

        self.output, self.replay = capture(body)

    def __call__(self, inputs: tuple[Any, ...]) -> Any:
        for buffer, tensor in zip(self.buffers, tensors_in(inputs), strict=True):
            buffer.copy_(tensor)
        self.replay()
        copies = [tensor.clone() for tensor in tensors_in(self.output)]  # the next replay overwrites the output
        output = _with_tensors(self.output, iter(copies))
        return output if self.names is None else dict(zip(self.names, output.unbind(), strict=True))


class Graphs:
    """Functions of `algorithm`, recorded when first called with inputs of some shape and replayed after that.

    Such a function depends only on its inputs and on the tensors of `Algorithm.state`, and changes only the latter, in
    place. Inputs are tensors, tuples and dataclasses of them, or constants (a rollout, a member's number); it returns a
    tensor, or scalars by name. All shapes follow from those of the inputs; it draws no random numbers and reads no
    tensor value on the host.
    """

    def __init__(self, algorithm: Algorithm, capture: Capture = capture_on_gpu) -> None:
        self.algorithm, self.capture = algorithm, capture
        self.recordings: dict[tuple[Any, ...], RecordedFunction] = {}

    def __call__(self, function: Callable[..., Result], *inputs: Any) -> Result:
        """Call `function` with `inputs`; record it the first time, replay it afterwards."""
        shapes = ((leaf.shape, leaf.dtype) if isinstance(leaf, Tensor) else leaf for leaf in leaves(inputs))
        key = (function, *shapes)
        if key not in self.recordings:
            before = {name: tensor.clone() for name, tensor in self.algorithm.state().items()}
            self.recordings[key] = RecordedFunction(function, inputs, self.capture)
            self._restore(before)
        return self.recordings[key](inputs)

    @torch.no_grad()
    def _restore(self, before: dict[str, Tensor]) -> None:
        """Restore the algorithm's tensors to `before` in place; zero the ones an optimiser has created since."""
        for name, tensor in self.algorithm.state().items():
            if name in before:
                tensor.copy_(before[name])
            else:
                tensor.zero_()


def leaves(inputs: Any) -> list[Any]:
    """Return the leaves of nested tuples and dataclasses, in order."""
    parts = _parts(inputs)
    return [inputs] if parts is None else [leaf for part in parts for leaf in leaves(part)]


def tensors_in(inputs: Any) -> list[Tensor]:
    """Return the tensors among the leaves of `inputs`."""
    return [leaf for leaf in leaves(inputs) if isinstance(leaf, Tensor)]


def _with_tensors(inputs: Any, tensors: Iterator[Tensor]) -> Any:
    """Return `inputs` with its tensors replaced by `tensors`."""
    if isinstance(inputs, Tensor):
        return next(tensors)
    if (parts := _parts(inputs)) is None:
        return inputs
    parts = [_with_tensors(part, tensors) for part in parts]
    return tuple(parts) if type(inputs) is tuple else type(inputs)(*parts)


def _parts(inputs: Any) -> list[Any] | None:
    """Return the elements of a tuple or dataclass; None for anything else."""
    if isinstance(inputs, tuple):
        return list(inputs)
    if dataclasses.is_dataclass(inputs):
        return [getattr(inputs, field.name) for field in dataclasses.fields(inputs)]
    return None
