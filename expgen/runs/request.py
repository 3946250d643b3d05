"""expgen evaluate: a run's agents on levels of the caller's choice."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from expgen.agents.agent import Agent
from expgen.envs.levels import LevelSet
from expgen.envs.make import make_env
from expgen.errors import InputError
from expgen.evaluation.evaluate import OnEpisode, check_played, evaluate
from expgen.evaluation.scores import Score, Split
from expgen.exploration.explore import Exploration, explore
from expgen.exploration.oracle import make_oracle
from expgen.reward.knn import KnnConfig
from expgen.runs.adopt import plans_in
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.load import agents_of, check_weights, load_run
from expgen.runs.plan import LearnerPlan
from expgen.runs.scoring import Scored, score_row
from expgen.training.average import Weights
from expgen.training.resources import plan_resources


@dataclass(frozen=True)
class EvaluationRequest:
    """Which of a run's agents to play, on what."""

    split: Split | None = None  # None: whatever `levels` are, else test
    levels: str | None = None  # others than the split's
    episodes: int = 500
    seed: int = 0
    learner: str | None = None  # one policy alone; None: the run's agent, or every member where there is no ensemble
    envs: int = 64
    device: str = "cpu"
    weights: Weights = "live"  # those of the policies, or their averages where a run keeps them
    consensus: Mapping[str, Any] = field(default_factory=dict)  # settings of the run's ConsensusConfig to change

    def __post_init__(self) -> None:
        check_played(self.episodes, self.envs, self.seed)


class ScoredAgent(NamedTuple):
    """A row, the agent as it was when it had played, and what it explored where it was trained to."""

    score: Score
    agent: Agent
    exploration: Exploration | None


def single_requests(folder: RunFolder, request: EvaluationRequest) -> list[EvaluationRequest]:
    """The same request, one for each agent that it means."""
    config, _ = folder.read_config()
    check_levels(config, request)
    trained = folder.learners()
    names = agents_of(folder, config, request.learner)
    for name in names:
        check_weights(folder, [name] if name in trained else trained, request.weights)
    return [replace(request, learner=name if name in trained else None) for name in names]


def score_run(
    folder: RunFolder, request: EvaluationRequest, on_episode: OnEpisode = lambda episode: None
) -> Iterator[ScoredAgent]:
    """Each agent asked for."""
    config, _ = folder.read_config()
    check_levels(config, request)
    resources = plan_resources(request.device, 1)
    plans = {plan.name: plan for plan in plans_in(folder, config)}
    for name in agents_of(folder, config, request.learner):
        loaded = load_run(folder, name, request.seed, request.device, request.consensus, request.weights)
        plan = plans.get(name)
        split, level_set = _levels_for(config, request, plan)
        knn = plan.reward if plan and isinstance(plan.reward, KnnConfig) else None
        num_envs, threads = min(request.envs, request.episodes), resources.env_threads
        env = make_env(config.env, level_set, num_envs, request.seed, threads, knn is not None, **config.options)
        exploration = None
        try:
            if knn is not None:
                oracle = make_oracle(config.env, **config.options)
                exploration = explore(
                    loaded.agent, env, knn, oracle, request.episodes, request.seed, on_episode=on_episode
                )
                evaluation = exploration.evaluation
            else:
                evaluation = evaluate(loaded.agent, env, request.episodes, request.seed, on_episode)
        finally:
            env.close()
        algo, seed = (plan.algo, plan.seed) if plan else (config.algo, config.seed)
        who = Scored(algo, seed, loaded.name, loaded.env_steps)
        yield ScoredAgent(score_row(config, who, split, evaluation, level_set), loaded.agent, exploration)


def check_levels(config: TrainConfig, request: EvaluationRequest) -> None:
    """Refuse levels that are not what `split` says, and any choice of them where there is none."""
    split, levels = request.split, request.levels
    if not config.has_unseen_levels and (split != "train" or levels is not None):
        raise InputError(f"--split is test but {config.env} has no levels to leave unseen; accepted: --split train")
    if levels is not None:
        belongs, _ = split_of(config, levels)
        if split not in (None, belongs):
            kind = {"train": "training levels", "test": "unseen levels"}[belongs]
            raise InputError(
                f"--split is {split} but --levels {levels} are {kind}; accepted: --split {belongs}, or none"
            )


def _levels_for(config: TrainConfig, request: EvaluationRequest, plan: LearnerPlan | None) -> tuple[Split, LevelSet]:
    """What was asked for; one learner's training levels are its own, which a bootstrap makes fewer than the run's."""
    if request.levels is not None:
        return split_of(config, request.levels)
    if request.split == "train":
        return "train", plan.levels if plan else config.train_set
    return "test", config.test_set


def split_of(config: TrainConfig, levels: str) -> tuple[Split, LevelSet]:
    """Levels named by hand are train or test levels; a mixture would be neither."""
    chosen = LevelSet.parse(levels, "--levels")
    if chosen.seeds is None:
        return "test", chosen.without(config.train_set)
    if not chosen.overlaps(config.train_set):
        return "test", chosen
    if len(chosen) <= len(config.train_set) and all(level in config.train_set for level in chosen.seeds):
        return "train", chosen
    raise InputError(f"--levels {levels} overlap the training levels {config.levels}; accepted: all or none of them")
