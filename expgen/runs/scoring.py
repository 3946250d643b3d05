"""What an agent got: rows of scores.csv and of exploration.csv, while a run trains, at its end and whenever asked."""

import json
from collections.abc import Callable, Collection, Generator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from expgen.agents.agent import Agent, PolicyAgent
from expgen.agents.build import LoadedAgent, build_agent, checkpoint_of, policies_from, policy_names, training_settings
from expgen.agents.description import AgentDescription
from expgen.envs.levels import LevelSet
from expgen.evaluation.evaluate import Arena, OnEpisode, play_levels, result_of
from expgen.evaluation.scores import SPLITS, Score, Split, append_scores, rows_so_far, score_row
from expgen.exploration.explore import Exploration, ExplorationWatcher
from expgen.exploration.oracle import Oracle, make_oracle
from expgen.exploration.rows import EXPLORATION_FILE, append_exploration, exploration_row
from expgen.fast.fast_networks import for_play
from expgen.networks.actor_critic import Policy
from expgen.provenance import commit
from expgen.reward.knn import KnnConfig
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.messages import ScoreRequest
from expgen.runs.plan import LearnerPlan, plans_of
from expgen.training.average import Weights, has_average
from expgen.training.learner import Learner
from expgen.training.loop import Policies, Scores
from expgen.training.resources import Resources

METRIC_PREFIXES: dict[Weights, str] = {"live": "", "average": "average_"}


class ScoredAgent(NamedTuple):
    """A row, the agent as it was when it had played, and what it explored where it was trained to."""

    score: Score
    agent: Agent | None  # None where only what came of it was sent
    exploration: Exploration | None


def score_agent(
    loaded: LoadedAgent, arena: Arena, split: Split, levels: LevelSet, on_episode: OnEpisode = lambda episode: None
) -> Generator[None, None, ScoredAgent]:
    """One agent on one set of levels; gives way once a step. A policy that learnt from r_I is measured by it too."""
    commit()  # asked for before it plays: the checkout may move on while it does
    reward = loaded.policy.reward if loaded.policy else None
    watcher = ExplorationWatcher(reward, arena.num_envs, arena.episodes) if isinstance(reward, KnnConfig) else None
    evaluation = yield from play_levels(loaded.agent, arena, levels, watcher, watcher is not None, on_episode)
    explored = None
    if watcher is not None:
        explored = watcher.exploration(evaluation.episodes, _oracle(arena.env, json.dumps(dict(arena.options))))
    return ScoredAgent(score_row(loaded, arena, split, levels, evaluation), loaded.agent, explored)


@cache
def _oracle(env: str, options: str) -> Oracle | None:
    """Made once: it remembers the levels it has counted. `options` are JSON, for some hold lists."""
    return make_oracle(env, **json.loads(options))


def keep_scores(file: Path, scored: Collection[ScoredAgent]) -> None:
    """Add rows to the score file `file`, and what was explored to exploration.csv beside it."""
    append_scores(file, [one.score for one in scored])
    explored = [exploration_row(one.score, one.exploration) for one in scored if one.exploration is not None]
    if explored and not file.is_char_device():
        append_exploration(file.with_name(EXPLORATION_FILE), explored)


class RunScorer:
    """Scores what a run trains, with games and randomness of its own: training never notices."""

    def __init__(
        self,
        agent: AgentDescription,
        config: TrainConfig,
        folder: RunFolder,
        resources: Resources,
        before_writing: Callable[[], None] = lambda: None,
    ) -> None:
        """`agent` is what the run's policies make; `before_writing` raises where the run is no longer ours."""
        self.agent, self.config, self.folder, self.before_writing = agent, config, folder, before_writing
        self.plans = {plan.name: plan for plan in plans_of(config)}
        self.device = str(resources.device)
        self.arena = Arena(config.env, config.options, config.eval_episodes, threads=resources.env_threads)

    def score_learner(self, learner: Learner) -> Generator[None, None, Scores]:
        """What a learner of this process has come to."""
        return self.score(learner.name, learner.env_steps, learner.policies())

    def answer(self, request: ScoreRequest) -> Generator[None, None, Scores]:
        """What the weights in a file have come to; the ensemble is played in one go, since it is a run's last score."""
        if request.learner is None or request.weights is None:
            self.score_ensemble()
            return {}
        described = self.agent.policies[request.learner]
        policies = policies_from(request.weights, described, self.agent.spec, self.device)
        return (yield from self.score(request.learner, request.env_steps, policies))

    def score(self, learner: str, env_steps: int, policies: Policies) -> Generator[None, None, Scores]:
        """Metrics of every policy of a learner on both splits; the last ones of a learner also become rows."""
        plan, metrics = self.plans[learner], Scores()
        for weights, policy in policies.items():
            load = partial(self._loaded, plan, env_steps, for_play(policy), weights)
            scored = yield from self._score_splits(load, plan.levels)
            if env_steps >= plan.steps:
                self._keep(scored)
            metrics |= {f"{METRIC_PREFIXES[weights]}{name}": value for name, value in _metrics(scored).items()}
        return metrics

    def _loaded(self, plan: LearnerPlan, env_steps: int, policy: Policy, weights: Weights) -> LoadedAgent:
        player, described = PolicyAgent(policy, self.config.seed), self.agent.policies[plan.name]
        settings = {**({} if weights == "live" else {"weights": weights}), **training_settings([described])}
        return LoadedAgent(player, plan.algo, plan.seed, plan.name, settings, env_steps, described)

    def score_ensemble(self) -> None:
        """Rows of all policies together, with explorers and with random actions in their place.

        An ensemble of which any policy has averaged weights is scored with these too.
        """
        assert self.agent.consensus is not None
        variants: list[dict[str, Any]] = [{"weights": "live"}]
        if self.agent.members and self.agent.consensus.vote != "turns":
            variants.append({"weights": "live", "changes": {"fallback": "random"}})
        players = policy_names(self.agent, self.agent.consensus)
        if any(has_average(checkpoint_of(self.agent, name)) for name in players):
            variants.append({"weights": "average"})
        for variant in variants:
            load = partial(build_agent, self.agent, device=self.device, **variant)
            self._keep(result_of(self._score_splits(load, self.agent.levels)))

    def _score_splits(
        self, load: Callable[[], LoadedAgent], train_set: LevelSet
    ) -> Generator[None, None, list[ScoredAgent]]:
        """`load` makes a fresh agent for each split."""
        scored = []
        for split in SPLITS if self.agent.has_unseen_levels else SPLITS[:1]:
            levels = train_set if split == "train" else self.agent.test_set
            scored.append((yield from score_agent(load(), self.arena, split, levels)))
        return scored

    def _keep(self, scored: list[ScoredAgent]) -> None:
        """What the file does not have yet."""
        known = set(map(_identity, rows_so_far(self.folder.scores_file)))
        self.before_writing()
        keep_scores(self.folder.scores_file, [one for one in scored if _identity(one.score) not in known])


def _identity(row: Score) -> tuple[str, str, str, int, str]:
    return row.agent, row.settings, row.split, row.env_steps, row.commit


def _metrics(scored: Collection[ScoredAgent]) -> Scores:
    metrics: Scores = {}
    for score, _, exploration in scored:
        metrics |= {f"{score.split}_return": score.mean_return, f"{score.split}_solved": score.solved_rate}
        if exploration is not None:
            metrics[f"{score.split}_intrinsic"] = exploration.intrinsic_return.value
            if exploration.oracle_share is not None:
                metrics[f"{score.split}_oracle_share"] = exploration.oracle_share.value
    return metrics
