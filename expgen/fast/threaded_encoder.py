"""ThreadedEncoder: an IMPALA encoder on the CPU that takes chunks of images through all layers, in several threads.

PyTorch computes layer after layer for the whole minibatch, with all threads together. The feature maps of 2,048 images
are too large for the caches, and threads wait for each other after every layer. Here each thread takes one chunk
through all layers, forward and later backward, before the next. Chunks do not depend on the number of threads, and
their gradients are summed in order, so the number of threads does not affect the weights.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import Function

from expgen.networks.impala import ImpalaEncoder

MIN_CHUNK, MAX_CHUNK = 16, 64  # images: fewer are slower per image, the feature maps of more leave the caches
MIN_CHUNKS = 4  # smaller chunks rather than fewer, so that several threads share the frames of one step

Result = TypeVar("Result")


class ThreadedEncoder:
    """Called like `encoder`: `obs` `[B, H, W, C]` → features `[B, F]`."""

    def __init__(self, encoder: ImpalaEncoder) -> None:
        self.encoder = encoder

    def __call__(self, obs: Tensor) -> Tensor:
        weights = [weight for weight in self.encoder.parameters() if weight.requires_grad]
        if torch.is_grad_enabled() and weights:
            features: Tensor = EncodeChunks.apply(self.encoder, obs, *weights)
            return features
        return torch.cat(list(in_threads(torch.no_grad()(self.encoder.forward), chunks_of(obs))))


class EncodeChunks(Function):
    """Features of all chunks; the backward pass runs the chunks' own backward passes in threads."""

    @staticmethod
    def forward(ctx: Any, encoder: ImpalaEncoder, obs: Tensor, *weights: Tensor) -> Tensor:
        ctx.weights = weights
        ctx.chunks = list(in_threads(torch.enable_grad()(encoder.forward), chunks_of(obs)))  # with their graphs
        return torch.cat([chunk.detach() for chunk in ctx.chunks])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        def gradients_of(chunk: Tensor, gradient: Tensor) -> tuple[Tensor, ...]:
            return torch.autograd.grad(chunk, ctx.weights, gradient)

        gradients = gradient.split([len(chunk) for chunk in ctx.chunks])
        totals: tuple[Tensor, ...] = ()
        parts: tuple[Tensor, ...]
        for parts in in_threads(gradients_of, ctx.chunks, gradients):
            totals = tuple(total.add_(part) for total, part in zip(totals, parts, strict=True)) if totals else parts
        return None, None, *totals


def chunks_of(obs: Tensor) -> tuple[Tensor, ...]:
    """Split `obs` `[B, …]` into chunks whose size depends on B alone."""
    return obs.split(min(MAX_CHUNK, max(MIN_CHUNK, len(obs) // MIN_CHUNKS)))


def in_threads(function: Callable[..., Result], *arguments: Iterable[Any]) -> Iterator[Result]:
    """Like `map`, with as many threads as torch may use; each computes in its own thread alone."""
    count = torch.get_num_threads()
    return _threads(count, os.getpid()).map(function, *arguments) if count > 1 else map(function, *arguments)


@cache
def _threads(count: int, process: int) -> ThreadPoolExecutor:
    """Return `count` threads of this process; a forked one has none of its parent's."""
    return ThreadPoolExecutor(count, "encoder", initializer=_compute_alone)


def _compute_alone() -> None:
    """Make operations of the current thread use no other threads."""
    torch.get_num_threads()  # a thread takes over the process's number at its first call: here, not after the next line
    torch.set_num_threads(1)
