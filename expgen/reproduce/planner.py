"""Planner: builds the jobs of exhibits at one scale."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from expgen.reproduce.job import Job, Scoring
from expgen.reproduce.scale import Scale

BUDGETS = {"25M": 1, "50M": 2, "100M": 4}  # multiples of Scale.steps


class Planner:
    """Builds jobs whose names let exhibits share runs: Table 1 and the ablations use the same policies."""

    def __init__(self, scale: Scale) -> None:
        self.scale = scale

    def train(self, game: str, algo: str, runs: int = 10, budget: str = "25M", label: str = "", **settings: Any) -> Job:
        """Return a job that trains `runs` learners of `algo`.

        game: a ProcGen game, which the scale may replace with minimaze, or an environment such as `procgen:maze`.
        budget: a key of BUDGETS.
        label: describes `settings` in names and reports.
        """
        scale, label = self.scale, f"budget={budget}" if budget != "25M" else label
        env = game if ":" in game else scale.env(game)
        name = "-".join((env.partition(":")[2] or env, algo, *label.replace("=", "-").split()))
        defaults = {"members": min(runs, scale.runs), "steps": scale.steps * BUDGETS[budget]}
        settings = {**scale.settings, **defaults, **settings}
        return Job(name, env, algo, scale.name, settings, label, episodes=scale.episodes)

    def ppo(self, game: str) -> Job:
        """Return the job of the ensemble's members, which are also the runs of PPO."""
        return self.train(game, "ppo", members=self.scale.members)

    def longer(self, job: Job, budget: str) -> list[Job]:
        """Return `job` and a job that continues its runs up to `budget`."""
        more = self.train(job.env, job.algo, budget=budget, members=job.settings["members"])
        return [job, replace(more, continues=job.name)]

    def explorer(self, game: str, label: str = "", **settings: Any) -> Job:
        """Return the job of the ensemble's explorer, seed 0."""
        return self.train(game, "maxent", 1, label=label, steps=self.scale.explorer_steps, **settings)

    def explorers(self, game: str, runs: int, label: str = "", **settings: Any) -> list[Job]:
        """Return jobs with `runs` seeds of the explorer; seed 0 is its own job, since ensembles use whole runs."""
        first, more = self.explorer(game, label, **settings), min(runs, self.scale.runs) - 1
        others = replace(first, name=f"{first.name}-more", settings={**first.settings, "seed": 1, "members": more})
        return [first, others] if more else [first]

    def expgen(
        self, game: str, scorings: Sequence[Scoring] = (), budget: str = "25M", label: str = "", **explorer: Any
    ) -> list[Job]:
        """Return the jobs of members, explorer and the agent made of both; `explorer` has settings of the explorer."""
        members = [self.ppo(game)] if budget == "25M" else self.longer(self.ppo(game), budget)
        explore = self.explorer(game, label, **explorer)
        settings = {f"explorer_{name}": value for name, value in explorer.items()}
        agent = self._population(game, "expgen", budget=budget, label=label, **settings)
        made_of = (members[-1].name, explore.name)
        return [*members, explore, replace(agent, made_of=made_of, scorings=tuple(scorings) or self.leaders())]

    def expgen_idaac(self, game: str) -> Job:
        """Return the job that trains IDAAC members and an explorer as one population, which no other job uses."""
        alone = tuple(Scoring(f"member{index}") for index in range(min(self.scale.runs, self.scale.members)))
        return replace(self._population(game, "expgen-idaac"), scorings=self.leaders() + alone)

    def _population(self, game: str, algo: str, **settings: Any) -> Job:
        sizes: dict[str, Any] = {"members": self.scale.members, "explorer_steps": self.scale.explorer_steps}
        return self.train(game, algo, **sizes, **settings)

    def leaders(self, runs: int = 10, **consensus: Any) -> tuple[Scoring, ...]:
        """Return the scorings of one ensemble: run r is led by member r."""
        count = min(runs, self.scale.runs, self.scale.members)
        return tuple(Scoring(consensus={"leader": leader, **consensus}) for leader in range(count))

    def hidden_maze(self) -> Job:
        """Return the job of Appendix A: ProcGen at every scale, since minimaze has no hidden mode."""
        return self.train("procgen:maze", "ppo-gru", label="hidden=true", levels="128", options={"hidden": True})
