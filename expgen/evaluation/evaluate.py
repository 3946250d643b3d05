"""Evaluation on a fixed list of episodes, each played to its end, so that short episodes are not over-counted.

The levels are drawn from the environment's level set in advance, each equally often; an environment that finishes takes
the next level of the list. Without level control every environment plays a fixed number of episodes instead. Training,
`expgen evaluate`, `tune`, bundles and `reproduce` all use this module.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy import ndarray

from expgen.agents.agent import Agent, check_compatible
from expgen.agents.description import AgentDescription
from expgen.envs.levels import LevelSet
from expgen.envs.make import MAX_ENVS, build_env, make_env
from expgen.envs.vec_env import LevelControl, Observation, VecEnv, checked_actions
from expgen.errors import InputError, check_range
from expgen.settings import LAST_SEED, check_integer
from expgen.training.resources import plan_resources

T = TypeVar("T")
MAX_EPISODE_STEPS = 100_000  # a longer episode is an error: it would never end
DEFAULT_NUM_ENVS = 64
MAX_EPISODES = 10_000_000  # the list of episodes is kept in memory
RESAMPLES = 2000  # bootstrap resamples


class Episode(NamedTuple):
    """One finished episode."""

    level: int
    episode_return: float
    length: int
    solved: bool
    died: bool = False  # ended neither in success nor at the time limit
    number: int = 0  # position in the list of episodes


class Evaluation(NamedTuple):
    """Result of an evaluation; the 95 % confidence interval is bootstrapped over levels."""

    mean_return: float
    std_return: float
    solved_rate: float
    ci_low: float
    ci_high: float
    episodes: list[Episode]

    def __repr__(self) -> str:
        mean = f"mean_return={self.mean_return:.2f} (95 % {self.ci_low:.2f} to {self.ci_high:.2f})"
        return f"Evaluation({mean}, solved_rate={self.solved_rate:.1%}, {len(self.episodes)} episodes)"


OnEpisode = Callable[[Episode], None]


def check_play_flags(episodes: int, envs: int, seed: int) -> None:
    """Raise InputError if a flag shared by all commands that play episodes is out of range."""
    check_range("--episodes", episodes, 1, MAX_EPISODES)
    check_range("--envs", envs, 1, MAX_ENVS)
    check_range("--seed", seed, 0, LAST_SEED)


class FrameWatcher(Protocol):
    """Receives every observation of the agent, for measurements."""

    def watch(self, observation: Observation, episode: ndarray) -> None:
        """Called before each step; `episode` `[N]` is the number of each environment's episode, −1 for none."""


def evaluate(
    agent: Agent,
    env: Any,
    episodes: int = 500,
    seed: int = 0,
    on_episode: OnEpisode = lambda episode: None,
    levels: LevelSet | str | int | Iterable[int] = "all",
    **options: Any,
) -> Evaluation:
    """Play `episodes` episodes and return their mean return, solved rate and confidence interval.

    env: an environment from `make_env`, with its own levels; or a name for `make_env`, with `levels` and `options`.
        Any levels are played: an agent does not know on which it was trained, so it is up to you not to mix them.
    seed: random seed for choosing levels.
    on_episode: called with each finished episode.
    """
    episodes, seed = check_integer("episodes", episodes, 1, MAX_EPISODES), check_integer("seed", seed, 0, LAST_SEED)
    is_env = callable(getattr(env, "observe", None)) and not isinstance(env, type)
    if is_env and (options or not (isinstance(levels, str) and levels == "all")):
        option = next(iter(options), "levels")
        raise InputError(f"{option} is given but env is an environment already; accepted: the name of an environment")
    games = env if is_env else make_env(env, levels, min(DEFAULT_NUM_ENVS, episodes), seed, **options)
    try:
        return summarize(result_of(play_episodes(agent, games, episodes, seed, None, on_episode)))
    finally:
        if not is_env:
            games.close()


def result_of(work: Generator[None, None, T]) -> T:
    """Run the generator `work` to its end and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as finished:
            return finished.value


@dataclass(frozen=True)
class Arena:
    """The environment and the number of episodes for scoring agents."""

    env: str  # name for build_env
    options: Mapping[str, Any]
    episodes: int
    seed: int = 0  # random seed for choosing levels
    max_envs: int = 64
    threads: int = 1  # threads that step the environments

    @property
    def num_envs(self) -> int:
        """Number of parallel environments, at most one per episode."""
        return min(self.max_envs, self.episodes)


def arena_of(
    agent: AgentDescription, episodes: int, seed: int = 0, envs: int = DEFAULT_NUM_ENVS, device: str = "cpu"
) -> Arena:
    """Return an arena of the agent's environment, with the threads that an agent on `device` leaves."""
    return Arena(agent.env, agent.options, episodes, seed, envs, plan_resources(device, 1).env_threads)


def play_levels(
    agent: Agent,
    arena: Arena,
    levels: LevelSet,
    watcher: FrameWatcher | None = None,
    full_view: bool = False,
    on_episode: OnEpisode = lambda episode: None,
) -> Generator[None, None, Evaluation]:
    """Evaluate `agent` on `levels` in new environments; yield once per step.

    `watcher` receives every observation; `full_view` adds the view on which r_I is measured. `on_episode` is called
    with each finished episode.
    """
    env = build_env(arena.env, levels, arena.num_envs, arena.seed, arena.threads, full_view, **arena.options)
    try:
        episodes = yield from play_episodes(agent, env, arena.episodes, arena.seed, watcher, on_episode)
    finally:
        env.close()
    return summarize(episodes)


def play_episodes(
    agent: Agent,
    env: VecEnv,
    episodes: int,
    seed: int = 0,
    watcher: FrameWatcher | None = None,
    on_episode: OnEpisode = lambda episode: None,
) -> Generator[None, None, list[Episode]]:
    """Play `episodes` episodes of `agent` in `env` and return them in the order of the list; yield once per step.

    `seed` draws the list of levels. `watcher` receives every observation, `on_episode` each finished episode.
    """
    if not callable(getattr(agent, "act", None)):
        raise InputError(f"agent is {agent!r}; accepted: an agent, for example from load_agent")
    check_compatible(agent, env.spec)
    check_range("--episodes", episodes, 1)
    N = env.num_envs
    levels = env.levels.draw(episodes, np.random.default_rng(seed)).tolist() if isinstance(env, LevelControl) else []
    numbers, quotas = iter(range(episodes)), [iter(range(i, episodes, N)) for i in range(N)]

    def next_episode(i: int, is_free: bool) -> int:
        """Return the number of environment `i`'s next episode, −1 for none, and set its level.

        Without level control an environment in the middle of an episode (not `is_free`) finishes that one first.
        """
        if not isinstance(env, LevelControl):
            return next(quotas[i], -1) if is_free else -1
        if (number := next(numbers, -1)) >= 0:
            env.play(i, levels[number])
        return number

    observation = env.observe()
    playing = np.array([next_episode(i, bool(observation.first[i])) for i in range(N)])  # [N]
    observation = env.observe()
    level = observation.level.copy()
    total, length = np.zeros(N), np.zeros(N, dtype=np.int64)
    finished: dict[int, Episode] = {}
    while len(finished) < episodes:
        if watcher is not None:
            watcher.watch(observation, playing)
        action = agent.act(observation.obs, observation.first, playing.copy())
        env.act(checked_actions(action, N, env.spec.num_actions))
        yield
        observation = env.observe()
        total += observation.reward
        length += 1
        is_endless = (length > MAX_EPISODE_STEPS) & (playing >= 0) & ~observation.first
        if is_endless.any():
            problem = f"an episode on level {level[is_endless][0]} has not ended after {MAX_EPISODE_STEPS:,} steps"
            raise InputError(f"{env.spec.name}: {problem}; accepted: an environment whose episodes end")
        died = observation.first & ~observation.solved & ~observation.timed_out  # [N]
        for i in np.flatnonzero(observation.first).tolist():
            if playing[i] >= 0:
                solved, number = bool(observation.solved[i]), int(playing[i])
                episode = Episode(int(level[i]), float(total[i]), int(length[i]), solved, bool(died[i]), number)
                finished[number] = episode
                on_episode(episode)
            playing[i] = next_episode(i, is_free=True)
            total[i], length[i], level[i] = 0.0, 0, observation.level[i]
    return [finished[number] for number in range(episodes)]


def summarize(episodes: list[Episode]) -> Evaluation:
    """Return the statistics of a list of episodes."""
    returns = np.array([episode.episode_return for episode in episodes])
    low, high = mean_interval(returns, np.array([episode.level for episode in episodes]))
    std = float(returns.std(ddof=1)) if len(returns) > 1 else 0.0
    solved = float(np.mean([episode.solved for episode in episodes]))
    return Evaluation(float(returns.mean()), std, solved, low, high, episodes)


def mean_interval(value: ndarray, level: ndarray, confidence: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of `value` `[E]`, resampling levels with all their episodes.

    A negative level is unknown: each such episode counts as a level of its own.
    """
    level = np.where(level < 0, -1 - np.arange(len(level)), level)
    _, cluster = np.unique(level, return_inverse=True)
    size = np.bincount(cluster)  # episodes of each level
    total = np.bincount(cluster, weights=value)
    rng = np.random.default_rng(0)
    weight = rng.multinomial(len(size), np.full(len(size), 1 / len(size)), size=RESAMPLES)  # [R, levels]
    mean = weight @ total / (weight @ size)
    low, high = np.quantile(mean, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
