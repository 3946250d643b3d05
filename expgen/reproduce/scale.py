"""Scales: the paper's own, hours on a laptop, and a smoke test."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from expgen.agents.quorum import scaled_quorum

T = TypeVar("T")


@dataclass(frozen=True)
class Scale:
    """How much of the paper's effort is spent, and on what games."""

    name: str  # also the preset
    is_builtin: bool  # minimaze stands in for every game, except where a game's own option is needed
    steps: int  # of a policy trained for reward, where the paper has 25M
    explorer_steps: int
    members: int  # of an ensemble
    runs: int  # at most so many seeds or leaders
    variants: int  # at most so many values of a setting that is varied
    episodes: int  # of each score
    resamples: int  # of the report's bootstraps

    def env(self, game: str) -> str:
        """What plays the part of `game`."""
        return "minimaze" if self.is_builtin else f"procgen:{game}"

    def thinned(self, values: Sequence[T]) -> list[T]:
        """At most `variants` of them, the first and the last among these."""
        if len(values) <= self.variants:
            return list(values)
        return [values[round(place * (len(values) - 1) / (self.variants - 1))] for place in range(self.variants)]

    def sizes(self, counts: Sequence[int]) -> list[int]:
        """Parts of an ensemble of ten as parts of ours."""
        return sorted({max(1, round(count * self.members / 10)) for count in counts})

    def quorums(self, counts: Sequence[int]) -> list[int]:
        """Quorums of ten members as quorums of ours."""
        return sorted({scaled_quorum(count, 10, self.members) for count in counts})

    @property
    def settings(self) -> dict[str, Any]:
        """What differs from the preset: smoke takes two scores on the way, so that there is a curve."""
        return {"eval_every": self.steps // 2, "eval_episodes": 4} if self.name == "smoke" else {}


SCALES = {
    scale.name: scale
    for scale in (
        Scale("smoke", True, 2048, 2048, members=2, runs=2, variants=2, episodes=8, resamples=100),
        Scale("laptop", True, 1_500_000, 1_500_000, members=5, runs=3, variants=3, episodes=400, resamples=2000),
        Scale("paper", False, 25_000_000, 100_000_000, 10, runs=10, variants=10, episodes=1000, resamples=50_000),
    )
}
