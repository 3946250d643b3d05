"""Planner: the runs that exhibits are made of, at one scale."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from expgen.reproduce.job import Job, Scoring
from expgen.reproduce.scale import Scale

BUDGETS = {"25M": 1, "50M": 2, "100M": 4}  # times the usual steps


class Planner:
    """Names runs so that exhibits share them: the same policies serve Table 1 and the ablations."""

    def __init__(self, scale: Scale) -> None:
        self.scale = scale

    def train(self, game: str, algo: str, runs: int = 10, budget: str = "25M", label: str = "", **settings: Any) -> Job:
        """`runs` learners of `algo` side by side; `label` says what `settings` make of it."""
        asked = {"members": min(runs, self.scale.runs), "steps": self.scale.steps * BUDGETS[budget], **settings}
        return self._job(game, algo, f"budget={budget}" if budget != "25M" else label, asked)

    def ppo(self, game: str, budget: str = "25M") -> Job:
        """The ensemble's members, which are also PPO's runs."""
        return self.train(game, "ppo", budget=budget, members=self.scale.members)

    def longer(self, game: str, algo: str, budget: str) -> list[Job]:
        """The usual runs of `algo`, and those of `budget`, which trains them on."""
        runs: dict[str, Any] = {"members": self.scale.members} if algo == "ppo" else {}
        usual, more = (self.train(game, algo, budget=steps, **runs) for steps in ("25M", budget))
        return [usual, replace(more, continues=usual.name)]

    def explorer(self, game: str, label: str = "", **settings: Any) -> Job:
        """The explorer that an ensemble takes in: seed 0."""
        return self._job(game, "maxent", label, {"steps": self.scale.explorer_steps, "members": 1, **settings})

    def explorers(self, game: str, runs: int, label: str = "", **settings: Any) -> list[Job]:
        """As many seeds of it as are asked for; the first apart, for ensembles take in whole runs."""
        first, more = self.explorer(game, label, **settings), min(runs, self.scale.runs) - 1
        asked = {"steps": self.scale.explorer_steps, "seed": 1, "members": more, **settings}
        others = replace(self._job(game, "maxent", label, asked), name=f"{first.name}-more")
        return [first, others] if more else [first]

    def expgen(
        self,
        game: str,
        scorings: Sequence[Scoring] = (),
        budget: str = "25M",
        label: str = "",
        **explorer: Any,
    ) -> list[Job]:
        """Members, explorer and the agent of both; `explorer` are settings that the explorer differs in."""
        members = self.longer(game, "ppo", budget) if budget != "25M" else [self.ppo(game)]
        explore = self.explorer(game, label, **explorer)
        asked = self._population(budget) | {f"explorer_{name}": value for name, value in explorer.items()}
        agent = self._job(game, "expgen", f"budget={budget}" if budget != "25M" else label, asked)
        made_of = (members[-1].name, explore.name)
        return [*members, explore, replace(agent, made_of=made_of, scorings=tuple(scorings) or self.leaders())]

    def expgen_idaac(self, game: str) -> Job:
        """IDAAC members and an explorer as one population: these members are nobody else's."""
        alone = tuple(Scoring(f"member{index}") for index in range(min(self.scale.runs, self.scale.members)))
        return replace(self._job(game, "expgen-idaac", "", self._population()), scorings=self.leaders() + alone)

    def _population(self, budget: str = "25M") -> dict[str, Any]:
        steps = self.scale.steps * BUDGETS[budget]
        return {"members": self.scale.members, "steps": steps, "explorer_steps": self.scale.explorer_steps}

    def leaders(self, runs: int = 10, **consensus: Any) -> tuple[Scoring, ...]:
        """Run r of an ensemble is led by member r."""
        count = min(runs, self.scale.runs, self.scale.members)
        return tuple(Scoring(consensus={"leader": leader, **consensus}) for leader in range(count))

    def hidden_maze(self, runs: int = 10) -> Job:
        """Appendix A; ProcGen at every scale, for minimaze cannot hide."""
        asked = {"members": min(runs, self.scale.runs), "levels": "128", "options": {"hidden": True}}
        return self._job("procgen:maze", "ppo-gru", "hidden=true", {**asked, "steps": self.scale.steps})

    def _job(self, game: str, algo: str, label: str, settings: dict[str, Any]) -> Job:
        """`game` is played by what stands in for it at this scale, unless it names an environment."""
        env = game if ":" in game else self.scale.env(game)
        name = "-".join((env.partition(":")[2] or env, algo, *label.replace("=", "-").split()))
        asked = {**self.scale.settings, **settings}
        return Job(name, env, algo, self.scale.name, asked, label, episodes=self.scale.episodes)
