"""RunScorer: the scores of a run's own policies and of its ensemble, during training and at its end."""

from collections.abc import Callable, Collection, Generator
from dataclasses import replace
from functools import partial

from expgen.agents.build import LoadedAgent, agent_of_policy, build_agent, policy_names
from expgen.agents.description import AgentDescription
from expgen.agents.policies import checkpoint_of, policies_from
from expgen.envs.levels import LevelSet
from expgen.evaluation.evaluate import Arena, result_of
from expgen.evaluation.scores import Score, Split, agent_name, rows_so_far, settings_text
from expgen.fast.fast_networks import for_play
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.messages import ScoreRequest
from expgen.runs.plan import plans_of
from expgen.runs.scoring import ScoredAgent, save_scores, score_agent
from expgen.training.average import Weights, has_average
from expgen.training.learner import Learner
from expgen.training.loop import Policies, Scores
from expgen.training.resources import Resources

METRIC_PREFIXES: dict[Weights, str] = {"live": "", "average": "average_"}


class RunScorer:
    """Scores the policies of a run, with its own games and random numbers: training is not affected."""

    def __init__(
        self,
        agent: AgentDescription,
        config: TrainConfig,
        folder: RunFolder,
        resources: Resources,
        before_writing: Callable[[], None] = lambda: None,
    ) -> None:
        """`agent` is the run's agent; `before_writing` is called before each write and raises if the run is lost."""
        self.agent, self.folder, self.before_writing = agent, folder, before_writing
        self.steps = {plan.name: plan.steps for plan in plans_of(config)}
        self.device = str(resources.device)
        self.arena = Arena(config.env, config.options, config.eval_episodes, threads=resources.env_threads)

    def score_learner(self, learner: Learner) -> Generator[None, None, Scores]:
        """Score a learner of this process."""
        policies: Policies = {weights: for_play(policy) for weights, policy in learner.policies().items()}
        return self.score(learner.name, learner.env_steps, policies)

    def score_request(self, request: ScoreRequest) -> Generator[None, None, Scores]:
        """Score saved weights, a trained learner or the ensemble, which is played without yielding."""
        if request.learner is None:
            self.score_ensemble(request.again)
        elif request.weights is None:
            yield from self.score_trained(request.learner)
        else:
            described = self.agent.policies[request.learner]
            policies = policies_from(request.weights, described, self.agent.spec, self.device)
            return (yield from self.score(request.learner, request.env_steps, policies))
        return {}

    def score(self, learner: str, env_steps: int, policies: Policies) -> Generator[None, None, Scores]:
        """Score a learner's frozen policies on both splits and return metrics; final scores also go to scores.csv."""
        metrics = Scores()
        for weights, policy in policies.items():
            load = partial(agent_of_policy, self.agent, learner, policy, weights, env_steps, self.agent.seed)
            scored = yield from self._score_splits(load, again=True)
            if env_steps >= self.steps[learner]:
                known = set(map(_identity, rows_so_far(self.folder.scores_file)))
                self._save([one for one in scored if _identity(one.score) not in known])
            metrics |= {f"{METRIC_PREFIXES[weights]}{name}": value for name, value in _metrics(scored).items()}
        return metrics

    def score_trained(self, learner: str) -> Generator[None, None, None]:
        """Score the newest checkpoint of a learner as agent.json plays it, where scores.csv lacks these rows."""
        kinds: list[Weights] = ["live"]
        if has_average(checkpoint_of(self.agent, learner)):
            kinds.append("average")
        for weights in kinds:
            agent = replace(self.agent, weights=weights)
            load = partial(build_agent, agent, learner, self.agent.seed, self.device)
            self._save((yield from self._score_splits(load)))

    def score_ensemble(self, again: bool = False) -> None:
        """Score all policies together: with the explorers, with random actions instead, and with averaged weights.

        Rows that scores.csv has are left out, unless `again`.
        """
        assert self.agent.consensus is not None
        live = replace(self.agent, weights="live")
        variants = [partial(build_agent, live)]
        if self.agent.has_vote:
            unhedged = replace(live, consensus=replace(self.agent.consensus, hedge=0.0))  # --hedge needs an explorer
            variants.append(partial(build_agent, unhedged, changes={"fallback": "random"}))
        players = policy_names(self.agent, self.agent.consensus)
        if any(has_average(checkpoint_of(self.agent, name)) for name in players):
            variants.append(partial(build_agent, replace(self.agent, weights="average")))
        for load in variants:
            self._save(result_of(self._score_splits(partial(load, device=self.device), again)))

    def _score_splits(
        self, load: Callable[[], LoadedAgent], again: bool = False
    ) -> Generator[None, None, list[ScoredAgent]]:
        """Score a new agent, made by `load`, on each split that scores.csv lacks, or `again` on both."""
        scored = []
        for split in self.agent.splits:
            loaded = load()
            levels = self.agent.levels_of(split, loaded.name)
            if again or not self._has_row(loaded, split, levels):
                scored.append((yield from score_agent(loaded, self.arena, split, levels)))
        return scored

    def _has_row(self, loaded: LoadedAgent, split: Split, levels: LevelSet) -> bool:
        """Whether scores.csv has an evaluation of these weights, settings and levels with as many episodes."""
        wanted = f"{loaded.name} {settings_text(loaded.settings)}".strip(), loaded.env_steps, split, str(levels)
        rows = [row for row in rows_so_far(self.folder.scores_file) if row.episodes >= self.arena.episodes]
        return wanted in {(agent_name(row), row.env_steps, row.split, row.levels) for row in rows}

    def _save(self, scored: list[ScoredAgent]) -> None:
        if scored:
            self.before_writing()
            save_scores(self.folder.scores_file, scored)


def _identity(row: Score) -> tuple[str, str, str, str, int, int, str]:
    return row.agent, row.settings, row.split, row.levels, row.env_steps, row.episodes, row.commit


def _metrics(scored: Collection[ScoredAgent]) -> Scores:
    metrics: Scores = {}
    for score, _, exploration, _ in scored:
        metrics |= {f"{score.split}_return": score.mean_return, f"{score.split}_solved": score.solved_rate}
        if exploration is not None:
            metrics[f"{score.split}_intrinsic"] = exploration.intrinsic_return.value
            if exploration.oracle_share is not None:
                metrics[f"{score.split}_oracle_share"] = exploration.oracle_share.value
    return metrics
