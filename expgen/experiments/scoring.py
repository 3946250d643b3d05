"""Scorer: train and test scores of a policy while it trains, and the final rows of scores.csv."""

import copy
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from expgen.agents.agent import Agent, PolicyAgent
from expgen.envs.levels import LevelSet
from expgen.envs.make import make_env
from expgen.errors import InputError
from expgen.evaluation.evaluate import Evaluation, evaluate, play_episodes, summarize
from expgen.evaluation.scores import Score, Split, append_scores, read_scores
from expgen.experiments.config import TrainConfig
from expgen.experiments.load import agents_of, load_run
from expgen.experiments.plan import LearnerPlan, plans_of
from expgen.experiments.run_folder import RunFolder
from expgen.networks.actor_critic import Policy
from expgen.provenance import commit
from expgen.training.learner import Scores
from expgen.training.resources import Resources, plan_resources

NUM_ENVS = 64  # environments an evaluation plays side by side


class Scored(NamedTuple):
    """Who a score belongs to."""

    algorithm: str
    seed: int
    agent: str
    env_steps: int


class Scorer:
    """Plays each split in environments of its own, with randomness of its own: training never notices."""

    def __init__(self, config: TrainConfig, folder: RunFolder, resources: Resources) -> None:
        self.config, self.folder, self.resources = config, folder, resources

    def score(self, plan: LearnerPlan, env_steps: int, policy: Policy) -> Generator[None, None, Scores]:
        """Return and solved rate on both splits; the last score of a learner also becomes rows of scores.csv."""
        plain = copy.deepcopy(policy)
        plain.encode = plain.encoder.forward  # whatever training runs on
        who = Scored(plan.algo, plan.seed, plan.name, env_steps)
        rows = yield from self._play(who, lambda: PolicyAgent(plain, self.config.seed))
        if env_steps >= plan.steps:
            self._record(rows)
        return {
            f"{row.split}_{name}": value
            for row in rows
            for name, value in (("return", row.mean_return), ("solved", row.solved_rate))
        }

    def score_consensus(self) -> None:
        """Rows for what the whole ensemble and its explorer have become."""
        loaded = load_run(self.folder, device=str(self.resources.device))
        who = Scored(self.config.algo, self.config.seed, loaded.name, loaded.env_steps)
        play = self._play(who, lambda: load_run(self.folder, device=str(self.resources.device)).agent)
        while True:
            try:
                next(play)
            except StopIteration as finished:
                self._record(finished.value)
                return

    def _play(self, who: Scored, make_agent: Callable[[], Agent]) -> Generator[None, None, list[Score]]:
        config, rows = self.config, []
        splits: tuple[tuple[Split, LevelSet], ...] = (("train", config.train_set), ("test", config.test_set))
        for split, levels in splits:
            num_envs = min(NUM_ENVS, config.eval_episodes)
            env = make_env(config.env, levels, num_envs, config.seed, self.resources.env_threads, **config.options)
            try:
                evaluation = summarize((yield from play_episodes(make_agent(), env, config.eval_episodes)))
            finally:
                env.close()
            rows.append(score_row(config, who, split, str(levels), evaluation))
        return rows

    def _record(self, rows: list[Score]) -> None:
        path = self.folder.scores_file
        known = set(read_scores(path)) if path.exists() else set()
        seen = {(row.agent, row.split, row.env_steps, row.commit) for row in known}
        append_scores(path, [row for row in rows if (row.agent, row.split, row.env_steps, row.commit) not in seen])


@dataclass(frozen=True)
class EvaluationRequest:
    """Which of a run's agents to play, on what."""

    split: Split = "test"
    levels: str | None = None  # others than the split's
    episodes: int = 500
    seed: int = 0
    learner: str | None = None  # one policy alone; None: the run's agent, or every member where there is no ensemble
    envs: int = 64
    device: str = "cpu"
    consensus: Mapping[str, Any] = field(default_factory=dict)  # settings of the run's ConsensusConfig to change

    def __post_init__(self) -> None:
        for flag, value in (("--episodes", self.episodes), ("--envs", self.envs)):
            if value < 1:
                raise InputError(f"{flag} is {value}; accepted: 1 or more")
        if not 0 <= self.seed < 2**31:
            raise InputError(f"--seed is {self.seed}; accepted: 0 to {2**31 - 1}")


def score_run(folder: RunFolder, request: EvaluationRequest) -> Iterator[tuple[Score, Agent]]:
    """A row per agent asked for, and the agent as it was when it had played."""
    config, _ = folder.read_config()
    split, level_set = request.split, config.train_set if request.split == "train" else config.test_set
    if request.levels is not None:
        split, level_set = _split_of(config, request.levels)
    resources = plan_resources(request.device, 1)
    plans = {plan.name: plan for plan in plans_of(config)}
    for name in agents_of(folder, config, request.learner):
        loaded = load_run(folder, name, request.seed, request.device, request.consensus)
        num_envs = min(request.envs, request.episodes)
        env = make_env(config.env, level_set, num_envs, request.seed, resources.env_threads, **config.options)
        try:
            evaluation = evaluate(loaded.agent, env, request.episodes, request.seed)
        finally:
            env.close()
        algo, seed = (plans[name].algo, plans[name].seed) if name in plans else (config.algo, config.seed)
        who = Scored(algo, seed, loaded.name, loaded.env_steps)
        yield score_row(config, who, split, str(level_set), evaluation), loaded.agent


def _split_of(config: TrainConfig, levels: str) -> tuple[Split, LevelSet]:
    """Levels named by hand are train or test levels; a mixture would be neither."""
    chosen = LevelSet.parse(levels, "--levels")
    if chosen.seeds is None:
        return "test", chosen.without(config.train_set)
    if not chosen.overlaps(config.train_set):
        return "test", chosen
    if len(chosen) <= len(config.train_set) and all(level in config.train_set for level in chosen.seeds):
        return "train", chosen
    raise InputError(f"--levels {levels} overlap the training levels {config.levels}; accepted: all or none of them")


def score_row(config: TrainConfig, who: Scored, split: Split, levels: str, evaluation: Evaluation) -> Score:
    """One row of scores.csv."""
    return Score(
        algorithm=who.algorithm,
        game=config.game,
        env=config.env,
        seed=who.seed,
        split=split,
        levels=levels,
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
