"""Scales of a reproduction: the paper's, hours on a laptop, a smoke test."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from expgen.agents.quorum import scaled_quorum

T = TypeVar("T")


@dataclass(frozen=True)
class Scale:
    """How much of the paper's training is done, and on which games."""

    name: str  # also the name of the preset
    is_builtin: bool  # minimaze replaces every game, except in the Hidden Maze
    steps: int  # of a policy trained for reward; the paper: 25M
    explorer_steps: int
    members: int  # of an ensemble
    runs: int  # maximum number of seeds or leaders
    variants: int  # maximum number of values of a setting in an ablation
    episodes: int  # of each score
    resamples: int  # of the report's bootstraps

    def env(self, game: str) -> str:
        """Return the environment that is played for `game`."""
        return "minimaze" if self.is_builtin else f"procgen:{game}"

    def thinned(self, values: Sequence[T]) -> list[T]:
        """Return at most `variants` of the values, evenly spaced, with the first and the last."""
        if len(values) <= self.variants:
            return list(values)
        step = (len(values) - 1) / (self.variants - 1)
        return [values[round(index * step)] for index in range(self.variants)]

    def sizes(self, counts: Sequence[int]) -> list[int]:
        """Scale ensemble sizes from the paper's ten members to ours."""
        return sorted({max(1, round(count * self.members / 10)) for count in counts})

    def quorums(self, counts: Sequence[int]) -> list[int]:
        """Scale quorums of ten members to our ensemble size."""
        return sorted({scaled_quorum(count, 10, self.members) for count in counts})

    @property
    def settings(self) -> dict[str, Any]:
        """Return overrides of the preset: smoke evaluates twice during training, so that there is a curve."""
        return {"eval_every": self.steps // 2, "eval_episodes": 4} if self.name == "smoke" else {}


SCALES = {
    scale.name: scale
    for scale in (
        Scale("smoke", True, 2048, 2048, members=2, runs=2, variants=2, episodes=8, resamples=100),
        Scale("laptop", True, 1_500_000, 1_500_000, members=5, runs=3, variants=3, episodes=400, resamples=2000),
        Scale("paper", False, 25_000_000, 100_000_000, 10, runs=10, variants=10, episodes=1000, resamples=50_000),
    )
}
