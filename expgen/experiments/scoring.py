"""Scorer: train and test scores of a policy while it trains, and the final rows of scores.csv."""

import copy
from collections.abc import Generator, Iterator

from expgen.agents.agent import PolicyAgent
from expgen.envs.levels import LevelSet
from expgen.envs.make import make_env
from expgen.errors import InputError
from expgen.evaluation.evaluate import Evaluation, evaluate, play_episodes, summarize
from expgen.evaluation.scores import Score, Split, append_scores, read_scores
from expgen.experiments.config import TrainConfig
from expgen.experiments.load import load_learner, members_of
from expgen.experiments.run_folder import RunFolder
from expgen.networks.actor_critic import Policy
from expgen.provenance import commit
from expgen.training.learner import Scores
from expgen.training.resources import Resources, plan_resources

NUM_ENVS = 64  # environments an evaluation plays side by side


class Scorer:
    """Plays each split in environments of its own, with randomness of its own: training never notices."""

    def __init__(self, config: TrainConfig, folder: RunFolder, resources: Resources) -> None:
        self.config, self.folder, self.resources = config, folder, resources

    def score(self, learner: str, env_steps: int, policy: Policy) -> Generator[None, None, Scores]:
        """Return and solved rate on both splits; the last score of a run also becomes rows of scores.csv."""
        config = self.config
        agent_policy = copy.deepcopy(policy)
        agent_policy.encode = agent_policy.encoder.forward  # plain, whatever training runs on
        result: Scores = {}
        rows = []
        splits: tuple[tuple[Split, LevelSet], ...] = (("train", config.train_set), ("test", config.test_set))
        for split, levels in splits:
            agent = PolicyAgent(agent_policy, config.seed)
            num_envs = min(NUM_ENVS, config.eval_episodes)
            env = make_env(config.env, levels, num_envs, config.seed, self.resources.env_threads, **config.options)
            try:
                evaluation = summarize((yield from play_episodes(agent, env, config.eval_episodes)))
            finally:
                env.close()
            result[f"{split}_return"], result[f"{split}_solved"] = evaluation.mean_return, evaluation.solved_rate
            rows.append(score_row(config, learner, split, str(levels), env_steps, evaluation))
        if env_steps >= config.num_updates * config.envs * config.rollout_steps:
            self._record(rows)
        return result

    def _record(self, rows: list[Score]) -> None:
        path = self.folder.scores_file
        known = set(read_scores(path)) if path.exists() else set()
        seen = {(row.agent, row.split, row.env_steps, row.commit) for row in known}
        append_scores(path, [row for row in rows if (row.agent, row.split, row.env_steps, row.commit) not in seen])


def score_run(
    folder: RunFolder,
    split: Split,
    levels: str | None,
    episodes: int,
    seed: int,
    member: int | None,
    num_envs: int,
    device: str,
) -> Iterator[Score]:
    """A row per learner of the run, on the levels of `split` or on `levels`."""
    for flag, value in (("--episodes", episodes), ("--envs", num_envs)):
        if value < 1:
            raise InputError(f"{flag} is {value}; accepted: 1 or more")
    if not 0 <= seed < 2**31:
        raise InputError(f"--seed is {seed}; accepted: 0 to {2**31 - 1}")
    config, _ = folder.read_config()
    if levels is not None:
        split, level_set = _split_of(config, levels)
    else:
        level_set = config.train_set if split == "train" else config.test_set
    resources = plan_resources(device, 1)
    for learner in members_of(folder, config, member):
        loaded = load_learner(folder, learner, seed, device)
        env = make_env(
            config.env, level_set, min(num_envs, episodes), seed, resources.env_threads, **config.options
        )
        try:
            evaluation = evaluate(loaded.agent, env, episodes, seed)
        finally:
            env.close()
        yield score_row(config, learner, split, str(level_set), loaded.env_steps, evaluation)


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


def score_row(
    config: TrainConfig, learner: str, split: Split, levels: str, env_steps: int, evaluation: Evaluation
) -> Score:
    """One row of scores.csv for one learner of a run."""
    index = int(learner.removeprefix("member"))
    return Score(
        algorithm=config.algo,
        game=config.game,
        env=config.env,
        seed=config.seed + index,
        split=split,
        levels=levels,
        env_steps=env_steps,
        episodes=len(evaluation.episodes),
        mean_return=evaluation.mean_return,
        std_return=evaluation.std_return,
        solved_rate=evaluation.solved_rate,
        ci_low=evaluation.ci_low,
        ci_high=evaluation.ci_high,
        agent=learner,
        commit=commit(),
    )
