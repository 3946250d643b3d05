"""Per-episode sets of frames: those on which the ensemble has acted (`--once`), or all frames observed."""

import numpy as np
from numpy import ndarray

from expgen.networks.cached_encoder import frame_digest


class EpisodeFrames:
    """A set of frame digests per environment; two frames are equal if all their values are."""

    def __init__(self) -> None:
        self._digests: list[set[bytes]] = []

    def begin_step(self, first: ndarray) -> None:
        """Clear the sets of environments that start a new episode, `first` `[N]` bool."""
        if len(self._digests) != len(first):
            self._digests = [set() for _ in first]
        for env in np.flatnonzero(first).tolist():
            self._digests[env].clear()

    def add(self, env: ndarray, obs: ndarray) -> ndarray:
        """Add frames `obs` `[n, …]` to the sets of environments `env` `[n]`; return which were present, `[n]` bool."""
        was_present = np.zeros(len(env), dtype=bool)
        for row, index in enumerate(env.tolist()):
            digest, known = frame_digest(obs[row]), self._digests[index]
            was_present[row] = digest in known
            known.add(digest)
        return was_present
