"""RememberedFrames: an encoder that computes the features of a frame once, for agents that play.

What an encoder says depends on the frame alone, and an agent in a maze sees the same frames again and again: of those
that one PPO policy saw in 16 unseen mazes of ProcGen, 15 % were new in their episode. Memory, heads and sampling follow
after the encoder, so a policy plays as without this, to the rounding of a convolution whose batch has another size.
Where every frame is new nothing is gained, and finding that out costs 16 µs beside a millisecond of convolutions.
"""

from hashlib import blake2b

import torch
from numpy import ndarray
from torch import Tensor, nn

CAPACITY = 8192  # frames; with 256 features each 8 MiB
DIGEST_BYTES = 16  # so long that no two frames are ever taken for one


class RememberedFrames:
    """Called like `encoder`, on the CPU; keeps the features of the frames it saw, and when full forgets them all.

    It is for frozen weights. With gradients on, and while a weight asks for them, it remembers nothing; frozen weights
    that are replaced or written to make it forget. A write in place through `.data` goes unnoticed: torch does not
    count it.
    """

    def __init__(self, encoder: nn.Module, capacity: int = CAPACITY) -> None:
        self.encoder, self.capacity = encoder, capacity
        self._weights = [(module._parameters, name) for module in encoder.modules() for name in module._parameters]
        self._forget([])

    def __call__(self, obs: Tensor) -> Tensor:
        """`obs` `[B, H, W, C]` → features `[B, F]`."""
        weights = [weight for own, name in self._weights if (weight := own[name]) is not None]
        if torch.is_grad_enabled() or any(weight.requires_grad for weight in weights):
            self._forget([])
            return self.encoder(obs)
        if not 0 < len(obs) <= self.capacity or not obs.is_cpu:
            return self.encoder(obs)
        if self._seal != _seal_of(weights):
            self._forget(weights)
        names = [frame_digest(frame) for frame in obs.numpy()]
        new = self._row_of_new(names)
        if len(self._slot) + len(new) > self.capacity:
            self._forget(weights)
            new = self._row_of_new(names)
        if new:
            self._remember(list(new), self.encoder(obs if len(new) == len(obs) else obs[list(new.values())]))
        return self._features[[self._slot[name] for name in names]]  # [B, F]

    def _row_of_new(self, names: list[bytes]) -> dict[bytes, int]:
        return {name: row for row, name in enumerate(names) if name not in self._slot}

    def _remember(self, names: list[bytes], features: Tensor) -> None:
        """`features` `[rows, F]`, a row for each of `names`, go behind those that are there."""
        start, end = len(self._slot), len(self._slot) + len(names)
        if start == 0:
            self._features = features.new_empty(self.capacity, features.shape[1])  # one block: clones riddle the heap
        self._features[start:end] = features
        self._slot.update(zip(names, range(start, end), strict=True))

    def _forget(self, weights: list[nn.Parameter]) -> None:
        """Forget all frames; those to come are encoded by `weights`."""
        self._slot: dict[bytes, int] = {}  # digest of a frame → its row in the features
        self._features = torch.empty(0)  # [capacity, F]
        self._seal = _seal_of(weights)
        self._held = [weight.detach() for weight in weights]  # so that no other weight comes to lie at its address


def frame_digest(frame: ndarray) -> bytes:
    """A digest of the values of one observation."""
    return blake2b(frame.tobytes(), digest_size=DIGEST_BYTES).digest()


def _seal_of(weights: list[nn.Parameter]) -> list[tuple[int, int]]:
    """Addresses and versions: they change when a weight is replaced, or changed in place where torch counts that."""
    return [(weight.data_ptr(), weight._version) for weight in weights]
