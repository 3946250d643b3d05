"""Scorer: train and test scores of a policy while it trains, and the final rows of scores.csv."""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from typing import Any, NamedTuple

from expgen.agents.agent import Agent, PolicyAgent
from expgen.envs.levels import LevelSet
from expgen.envs.make import make_env
from expgen.envs.vec_env import VecEnv
from expgen.evaluation.evaluate import Evaluation, play_episodes, result_of, summarize
from expgen.evaluation.scores import Score, Split, append_scores, rows_so_far
from expgen.exploration.explore import Exploration, explore_episodes
from expgen.exploration.oracle import Oracle, make_oracle
from expgen.fast.fast_networks import for_play
from expgen.networks.actor_critic import Policy
from expgen.provenance import commit
from expgen.reward.knn import KnnConfig
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.load import LoadedAgent, load_run, players_of, variant
from expgen.runs.plan import LearnerPlan
from expgen.training.average import Weights
from expgen.training.life import Policies, Scores
from expgen.training.resources import Resources

NUM_ENVS = 64  # environments an evaluation plays side by side
METRIC_PREFIXES: dict[Weights, str] = {"live": "", "average": "average_"}


class Scored(NamedTuple):
    """Who a score belongs to."""

    algorithm: str
    seed: int
    agent: str
    env_steps: int


class Played(NamedTuple):
    """What an agent did on one split, and what it explored where that was asked."""

    split: Split
    levels: LevelSet
    evaluation: Evaluation
    exploration: Exploration | None


class Scorer:
    """Plays each split in environments of its own, with randomness of its own: training never notices."""

    def __init__(
        self,
        config: TrainConfig,
        folder: RunFolder,
        resources: Resources,
        before_writing: Callable[[], None] = lambda: None,  # raises where the run is no longer ours
    ) -> None:
        self.config, self.folder, self.resources, self.before_writing = config, folder, resources, before_writing
        self._known_oracle: list[Oracle | None] = []

    def score(
        self, plan: LearnerPlan, env_steps: int, policy: Policy, weights: Weights = "live"
    ) -> Generator[None, None, Scores]:
        """Return and solved rate on both splits; the last score of a learner also becomes rows of scores.csv.

        `weights` says which of the learner's `policy` has: names of averaged ones' metrics begin with `average_`.
        """
        frozen = for_play(policy)
        who = Scored(plan.algo, plan.seed, variant(plan.name, weights), env_steps)
        knn = plan.reward if isinstance(plan.reward, KnnConfig) else None
        played = yield from self._play(lambda: PolicyAgent(frozen, self.config.seed), plan.levels, knn)
        if env_steps >= plan.steps:
            self._record(who, played)
        metrics: Scores = {}
        for split, _, evaluation, exploration in played:
            metrics |= {f"{split}_return": evaluation.mean_return, f"{split}_solved": evaluation.solved_rate}
            if exploration is not None:
                metrics[f"{split}_intrinsic"] = exploration.intrinsic_return.value
                if exploration.oracle_share is not None:
                    metrics[f"{split}_oracle_share"] = exploration.oracle_share.value
        return {f"{METRIC_PREFIXES[weights]}{name}": value for name, value in metrics.items()}

    def score_all(self, plan: LearnerPlan, env_steps: int, policies: Policies) -> Generator[None, None, Scores]:
        """The scores of every policy of a learner."""
        scores: Scores = {}
        for weights, policy in policies.items():
            scores |= yield from self.score(plan, env_steps, policy, weights)
        return scores

    def score_consensus(self, averaged: Collection[str] = ()) -> None:
        """Rows for what the whole ensemble has become, with its explorer and with random actions in its place.

        `averaged` are the learners that have averaged weights; an ensemble with any of them is scored with these too.
        """
        self._score_whole({})
        self._score_whole({"fallback": "random"})
        assert self.config.consensus is not None
        if any(name in averaged for name in players_of(self.config, self.config.consensus)):
            self._score_whole({}, "average")

    def _score_whole(self, consensus: Mapping[str, Any], weights: Weights = "live") -> None:
        def load() -> LoadedAgent:
            return load_run(self.folder, device=str(self.resources.device), consensus=consensus, weights=weights)

        loaded = load()
        who = Scored(self.config.algo, self.config.seed, loaded.name, loaded.env_steps)
        self._record(who, result_of(self._play(lambda: load().agent, self.config.train_set, None)))

    def _play(
        self, make_agent: Callable[[], Agent], train_set: LevelSet, knn: KnnConfig | None
    ) -> Generator[None, None, list[Played]]:
        config, played = self.config, []
        sets: dict[Split, LevelSet] = {"train": train_set}
        if config.has_unseen_levels:
            sets["test"] = config.test_set
        for split, levels in sets.items():
            env = self._env(levels, full_view=knn is not None)
            exploration = None
            try:
                if knn is not None:
                    oracle = self._oracle()
                    exploration = yield from explore_episodes(make_agent(), env, knn, oracle, config.eval_episodes)
                    evaluation = exploration.evaluation
                else:
                    evaluation = summarize((yield from play_episodes(make_agent(), env, config.eval_episodes)))
            finally:
                env.close()
            played.append(Played(split, levels, evaluation, exploration))
        return played

    def _env(self, levels: LevelSet, full_view: bool) -> VecEnv:
        config, threads = self.config, self.resources.env_threads
        num_envs = min(NUM_ENVS, config.eval_episodes)
        return make_env(config.env, levels, num_envs, config.seed, threads, full_view, **config.options)

    def _oracle(self) -> Oracle | None:
        """Made once: it remembers the levels it has counted."""
        if not self._known_oracle:
            self._known_oracle.append(make_oracle(self.config.env, **self.config.options))
        return self._known_oracle[0]

    def _record(self, who: Scored, played: list[Played]) -> None:
        rows = [score_row(self.config, who, part.split, part.evaluation, part.levels) for part in played]
        seen = {(row.agent, row.split, row.env_steps, row.commit) for row in self._rows()}
        new = [row for row in rows if (row.agent, row.split, row.env_steps, row.commit) not in seen]
        self.before_writing()
        append_scores(self.folder.scores_file, new)

    def _rows(self) -> Sequence[Score]:
        return rows_so_far(self.folder.scores_file)


def is_wanting(folder: RunFolder, config: TrainConfig, plan: LearnerPlan, env_steps: int) -> bool:
    """Whether a learner has come to its end without rows in scores.csv that say so."""
    is_due = config.eval_every > 0 and env_steps >= plan.steps
    rows = rows_so_far(folder.scores_file) if is_due else ()
    return is_due and not any((row.agent, row.env_steps) == (plan.name, env_steps) for row in rows)


def score_row(config: TrainConfig, who: Scored, split: Split, evaluation: Evaluation, levels: LevelSet) -> Score:
    """One row of scores.csv."""
    return Score(
        algorithm=who.algorithm,
        game=config.game,
        env=config.env,
        seed=who.seed,
        split=split,
        levels=str(levels),
        env_steps=who.env_steps,
        episodes=len(evaluation.episodes),
        mean_return=evaluation.mean_return,
        std_return=evaluation.std_return,
        solved_rate=evaluation.solved_rate,
        ci_low=evaluation.ci_low,
        ci_high=evaluation.ci_high,
        agent=who.agent,
        commit=commit(),
    )
