"""CachedEncoder: computes the features of each frame once, for agents that play on the CPU.

Features depend on the frame alone, and an agent in a maze sees the same frames many times: of the frames that one PPO
policy saw in 16 unseen ProcGen mazes, 15 % were new in their episode. Memory, heads and sampling are not cached, so a
policy plays as without the cache, up to rounding: the convolutions run on batches of other sizes. Where every frame is
new, the cache costs 16 µs per frame, compared with a millisecond of convolutions.
"""

from hashlib import blake2b

import torch
from numpy import ndarray
from torch import Tensor, nn

CAPACITY = 8192  # frames; 8 MiB with 256 features each
DIGEST_BYTES = 16  # long enough that two frames never share a digest


class CachedEncoder:
    """Called like `encoder`; caches the features of up to `capacity` frames, and clears the cache when it is full.

    It is for frozen weights. Nothing is cached while gradients are enabled or a weight requires them, and the cache is
    cleared when a weight is replaced or modified. A modification in place through `.data` is not detected: torch does
    not change the tensor's version.
    """

    def __init__(self, encoder: nn.Module, capacity: int = CAPACITY) -> None:
        self.encoder, self.capacity = encoder, capacity
        self._weights = [(module._parameters, name) for module in encoder.modules() for name in module._parameters]
        self._clear([])

    def __call__(self, obs: Tensor) -> Tensor:
        """Return the features `[B, F]` of `obs` `[B, H, W, C]`."""
        weights = [weight for parameters, name in self._weights if (weight := parameters[name]) is not None]
        if torch.is_grad_enabled() or any(weight.requires_grad for weight in weights):
            self._clear([])
            return self.encoder(obs)
        if not 0 < len(obs) <= self.capacity or not obs.is_cpu:
            return self.encoder(obs)
        if self._versions != _versions_of(weights):
            self._clear(weights)
        digests = [frame_digest(frame) for frame in obs.numpy()]
        new = self._rows_of_new(digests)
        if len(self._slot) + len(new) > self.capacity:
            self._clear(weights)
            new = self._rows_of_new(digests)
        if new:
            self._store(list(new), self.encoder(obs if len(new) == len(obs) else obs[list(new.values())]))
        return self._features[[self._slot[digest] for digest in digests]]  # [B, F]

    def _rows_of_new(self, digests: list[bytes]) -> dict[bytes, int]:
        return {digest: row for row, digest in enumerate(digests) if digest not in self._slot}

    def _store(self, digests: list[bytes], features: Tensor) -> None:
        """Append `features` `[rows, F]` to the cache, one row per digest."""
        start, end = len(self._slot), len(self._slot) + len(digests)
        if start == 0:
            self._features = features.new_empty(self.capacity, features.shape[1])  # one block avoids fragmentation
        self._features[start:end] = features
        self._slot.update(zip(digests, range(start, end), strict=True))

    def _clear(self, weights: list[nn.Parameter]) -> None:
        """Remove all frames; new ones are encoded with `weights`."""
        self._slot: dict[bytes, int] = {}  # digest of a frame → its row in the features
        self._features = torch.empty(0)  # [capacity, F]
        self._versions = _versions_of(weights)
        self._held = [weight.detach() for weight in weights]  # keeps their memory, so that addresses stay unique


def frame_digest(frame: ndarray) -> bytes:
    """Return a digest of one observation's values."""
    return blake2b(frame.tobytes(), digest_size=DIGEST_BYTES).digest()


def _versions_of(weights: list[nn.Parameter]) -> list[tuple[int, int]]:
    """Return address and version of each weight: one of them changes when it is replaced or modified in place."""
    return [(weight.data_ptr(), weight._version) for weight in weights]
