"""Graphs: a Runner that records what a function launches and replays it, one call of the host instead of hundreds.

A graph reads and writes fixed memory. Inputs that lie in the rollout, which is allocated once, are read where they are;
others are copied to a place of their own before each replay. A function is recorded once for every shape of its inputs.
Recording runs it a few times, so the algorithm is put back afterwards to what it was.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor

from expgen.algorithms.algorithm import Algorithm
from expgen.rollout.rollout import Rollout

WARM_UPS = 3  # runs before a capture, in which libraries choose their kernels and allocate
Result = TypeVar("Result")
Output = TypeVar("Output")
Capture = Callable[[Callable[[], Any]], tuple[Any, Callable[[], None]]]  # the output's memory, and what fills it again


def capture_on_gpu(body: Callable[[], Output]) -> tuple[Output, Callable[[], None]]:
    """As a CUDA graph, on the stream that work is handed to now (the default stream cannot be captured)."""
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

    def __init__(
        self, function: Callable[..., Any], inputs: tuple[Any, ...], is_held: list[bool], capture: Capture
    ) -> None:
        self.is_held = is_held  # of each tensor among the inputs: it is read where it lies
        self.memory = [tensor if held else tensor.clone() for tensor, held in zip(tensors_in(inputs), is_held)]
        self.names: list[str] | None = None  # of the scalars, where the function returns these
        fixed = _with_tensors(inputs, iter(self.memory))

        def body() -> Any:
            result = function(*fixed)
            if not isinstance(result, dict):
                return result
            self.names = list(result)
            return torch.stack(list(result.values()))  # one output to copy

        self.output, self.replay = capture(body)

    def __call__(self, inputs: tuple[Any, ...]) -> Any:
        for memory, tensor, is_held in zip(self.memory, tensors_in(inputs), self.is_held, strict=True):
            if not is_held:
                memory.copy_(tensor)
        self.replay()
        output = _with_tensors(self.output, (part.clone() for part in tensors_in(self.output)))  # it is overwritten
        return output if self.names is None else dict(zip(self.names, output.unbind(), strict=True))


class Graphs:
    """The Runner of `algorithm`, which learns from `rollout`."""

    def __init__(self, algorithm: Algorithm, rollout: Rollout, capture: Capture = capture_on_gpu) -> None:
        self.algorithm, self.capture = algorithm, capture
        kept = [tensor for tensor in vars(rollout).values() if isinstance(tensor, Tensor)]
        self.held = {tensor.untyped_storage().data_ptr(): tensor for tensor in kept}  # kept alive, each in its place
        self.recordings: dict[tuple[Any, ...], Recording] = {}

    def __call__(self, function: Callable[..., Result], *inputs: Any) -> Result:
        is_held = [tensor.untyped_storage().data_ptr() in self.held for tensor in tensors_in(inputs)]
        key = (function, *_signature(inputs, iter(is_held)))
        if key not in self.recordings:
            self.recordings[key] = self._record(function, inputs, is_held)
        return self.recordings[key](inputs)

    def forget(self) -> None:
        """Nothing recorded holds any more: an optimiser's tensors are new when they have been loaded."""
        self.recordings.clear()

    @torch.no_grad()
    def _put_back(self, before: dict[str, Tensor]) -> None:
        """Undo what was done since `before`, in place; what an optimiser did not have then is zero."""
        for name, tensor in self.algorithm.state().items():
            if name in before:
                tensor.copy_(before[name])
            else:
                tensor.zero_()

    def _record(self, function: Callable[..., Any], inputs: tuple[Any, ...], is_held: list[bool]) -> Recording:
        before = {name: tensor.clone() for name, tensor in self.algorithm.state().items()}
        recording = Recording(function, inputs, is_held, self.capture)
        self._put_back(before)
        return recording


def tensors_in(inputs: Any) -> Iterator[Tensor]:
    """The tensors among `inputs`, tuples opened."""
    if isinstance(inputs, Tensor):
        yield inputs
    elif isinstance(inputs, tuple):
        for part in inputs:
            yield from tensors_in(part)


def _with_tensors(inputs: Any, tensors: Iterator[Tensor]) -> Any:
    """`inputs` with other tensors in place of theirs."""
    if isinstance(inputs, Tensor):
        return next(tensors)
    if isinstance(inputs, tuple):
        parts = [_with_tensors(part, tensors) for part in inputs]
        return type(inputs)(*parts) if hasattr(inputs, "_fields") else tuple(parts)
    return inputs


def _signature(inputs: Any, is_held: Iterator[bool]) -> Iterator[Any]:
    """What decides whether a recording fits: shapes and types, where held tensors lie, and whatever is no tensor."""
    if isinstance(inputs, Tensor):
        place = (inputs.data_ptr(), inputs.stride()) if next(is_held) else None
        yield inputs.shape, inputs.dtype, place
    elif isinstance(inputs, tuple):
        for part in inputs:
            yield from _signature(part, is_held)
    else:
        yield inputs
