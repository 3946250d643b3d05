"""Frames of the episodes under way: those on which the ensemble has acted, for `--once`, or all that were shown."""

import numpy as np
from numpy import ndarray

from expgen.networks.remembered import frame_digest


class EpisodeFrames:
    """A set of digests per environment; frames are the same if every value of the observation is."""

    def __init__(self) -> None:
        self._digests: list[set[bytes]] = []

    def begin_step(self, first: ndarray) -> None:
        """Forget the episodes that have ended; `first` `[N]` as agents are told it."""
        if len(self._digests) != len(first):
            self._digests = [set() for _ in first]
        for env in np.flatnonzero(first).tolist():
            self._digests[env].clear()

    def add(self, env: ndarray, obs: ndarray) -> ndarray:
        """Add one frame `obs` `[n, …]` of each environment `env` `[n]` → whether it was there already, `[n]`."""
        was_there = np.zeros(len(env), dtype=bool)
        for row, index in enumerate(env.tolist()):
            digest, known = frame_digest(obs[row]), self._digests[index]
            was_there[row] = digest in known
            known.add(digest)
        return was_there
