"""Planner: the runs that exhibits are made of, at one scale."""

from collections.abc import Mapping
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
        words = f"budget={budget}" if budget != "25M" else label
        steps = self.scale.steps * BUDGETS[budget]
        asked = {"members": min(runs, self.scale.runs), "steps": steps, **settings}
        return self._job(self.scale.env(game), algo, words, asked)

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
        asked = {"steps": self.scale.explorer_steps, "members": 1, **settings}
        return self._job(self.scale.env(game), "maxent", label, asked)

    def explorers(self, game: str, runs: int, label: str = "", **settings: Any) -> list[Job]:
        """As many seeds of it as are asked for; the first apart, for ensembles take in whole runs."""
        first = self.explorer(game, label, **settings)
        more = min(runs, self.scale.runs) - 1
        asked = {"steps": self.scale.explorer_steps, "seed": 1, "members": more, **settings}
        others = self._job(self.scale.env(game), "maxent", label, asked, name_end="-more")
        return [first, others] if more else [first]

    def expgen(
        self,
        game: str,
        scorings: tuple[Scoring, ...] | None = None,
        budget: str = "25M",
        label: str = "",
        **explorer: Any,
    ) -> list[Job]:
        """Members, explorer and the agent of both; `explorer` are settings that the explorer differs in."""
        members = self.longer(game, "ppo", budget) if budget != "25M" else [self.ppo(game)]
        explore = self.explorer(game, label, **explorer)
        words = f"budget={budget}" if budget != "25M" else label
        asked = {
            "members": self.scale.members,
            "steps": self.scale.steps * BUDGETS[budget],
            "explorer_steps": self.scale.explorer_steps,
            **{f"explorer_{name}": value for name, value in explorer.items()},
        }
        agent = self._job(self.scale.env(game), "expgen", words, asked, scorings or self.leaders())
        return [*members, explore, replace(agent, made_of=(members[-1].name, explore.name))]

    def expgen_idaac(self, game: str) -> Job:
        """IDAAC members and an explorer as one population: these members are nobody else's."""
        asked = {
            "members": self.scale.members, "steps": self.scale.steps, "explorer_steps": self.scale.explorer_steps,
        }  # fmt: skip
        alone = tuple(Scoring(f"member{index}") for index in range(min(self.scale.runs, self.scale.members)))
        return self._job(self.scale.env(game), "expgen-idaac", "", asked, self.leaders() + alone)

    def leaders(self, runs: int = 10, **consensus: Any) -> tuple[Scoring, ...]:
        """Run r of an ensemble is led by member r."""
        count = min(runs, self.scale.runs, self.scale.members)
        return tuple(Scoring(consensus={"leader": leader, **consensus}) for leader in range(count))

    def hidden_maze(self, runs: int = 10) -> Job:
        """Appendix A; ProcGen at every scale, for minimaze cannot hide."""
        asked = {"members": min(runs, self.scale.runs), "levels": "128", "options": {"hidden": True}}
        asked["steps"] = self.scale.steps
        return self._job("procgen:maze", "ppo-gru", "hidden=true", asked)

    def _job(
        self,
        env: str,
        algo: str,
        label: str,
        settings: Mapping[str, Any],
        scorings: tuple[Scoring, ...] = (Scoring(),),
        name_end: str = "",
    ) -> Job:
        game = env.partition(":")[2] or env
        name = "-".join((game, algo, *label.replace("=", "-").split())) + name_end
        asked, episodes = {**self.scale.settings, **settings}, self.scale.episodes
        return Job(name, env, algo, self.scale.name, asked, label, scorings=scorings, episodes=episodes)
