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
        """`runs` learners of `algo` side by side; `label` says what `settings` make of it.

        `game` is played by what stands in for it at this scale, unless it names an environment.
        """
        scale, label = self.scale, f"budget={budget}" if budget != "25M" else label
        env = game if ":" in game else scale.env(game)
        name = "-".join((env.partition(":")[2] or env, algo, *label.replace("=", "-").split()))
        asked = {"members": min(runs, scale.runs), "steps": scale.steps * BUDGETS[budget], **settings}
        return Job(name, env, algo, scale.name, {**scale.settings, **asked}, label, episodes=scale.episodes)

    def ppo(self, game: str) -> Job:
        """The ensemble's members, which are also PPO's runs."""
        return self.train(game, "ppo", members=self.scale.members)

    def longer(self, usual: Job, budget: str) -> list[Job]:
        """The job `usual`, and one that trains its runs on to `budget`."""
        more = self.train(usual.env, usual.algo, budget=budget, members=usual.settings["members"])
        return [usual, replace(more, continues=usual.name)]

    def explorer(self, game: str, label: str = "", **settings: Any) -> Job:
        """The explorer that an ensemble takes in: seed 0."""
        return self.train(game, "maxent", 1, label=label, steps=self.scale.explorer_steps, **settings)

    def explorers(self, game: str, runs: int, label: str = "", **settings: Any) -> list[Job]:
        """As many seeds of it as are asked for; the first apart, for ensembles take in whole runs."""
        first, more = self.explorer(game, label, **settings), min(runs, self.scale.runs) - 1
        others = replace(first, name=f"{first.name}-more", settings={**first.settings, "seed": 1, "members": more})
        return [first, others] if more else [first]

    def expgen(
        self, game: str, scorings: Sequence[Scoring] = (), budget: str = "25M", label: str = "", **explorer: Any
    ) -> list[Job]:
        """Members, explorer and the agent of both; `explorer` are settings that the explorer differs in."""
        members = [self.ppo(game)] if budget == "25M" else self.longer(self.ppo(game), budget)
        explore = self.explorer(game, label, **explorer)
        settings = {f"explorer_{name}": value for name, value in explorer.items()}
        agent = self._population(game, "expgen", budget=budget, label=label, **settings)
        made_of = (members[-1].name, explore.name)
        return [*members, explore, replace(agent, made_of=made_of, scorings=tuple(scorings) or self.leaders())]

    def expgen_idaac(self, game: str) -> Job:
        """IDAAC members and an explorer as one population: these members are nobody else's."""
        alone = tuple(Scoring(f"member{index}") for index in range(min(self.scale.runs, self.scale.members)))
        return replace(self._population(game, "expgen-idaac"), scorings=self.leaders() + alone)

    def _population(self, game: str, algo: str, **settings: Any) -> Job:
        sizes: dict[str, Any] = {"members": self.scale.members, "explorer_steps": self.scale.explorer_steps}
        return self.train(game, algo, **sizes, **settings)

    def leaders(self, runs: int = 10, **consensus: Any) -> tuple[Scoring, ...]:
        """Run r of an ensemble is led by member r."""
        count = min(runs, self.scale.runs, self.scale.members)
        return tuple(Scoring(consensus={"leader": leader, **consensus}) for leader in range(count))

    def hidden_maze(self) -> Job:
        """Appendix A; ProcGen at every scale, for minimaze cannot hide."""
        return self.train("procgen:maze", "ppo-gru", label="hidden=true", levels="128", options={"hidden": True})
