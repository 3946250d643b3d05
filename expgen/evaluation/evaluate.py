"""Playing a fixed list of episodes, each to its end: short episodes are not over-counted.

The levels are drawn from the environment's level set before anything is played, each as often as any other; a free
environment takes the next on the list. Environments without level control play a fixed quota each instead. Training,
`expgen evaluate`, `tune`, bundles and reproductions all come through here.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy import ndarray

from expgen.agents.agent import Agent, check_compatible
from expgen.agents.consensus import ConsensusAgent
from expgen.envs.levels import LevelSet
from expgen.envs.make import MAX_ENVS, build_env, make_env
from expgen.envs.vec_env import LevelControl, Observation, VecEnv, checked_actions
from expgen.errors import InputError, check_range
from expgen.settings import LAST_SEED, check_integer

T = TypeVar("T")
LONGEST = 100_000  # steps of an episode, after which it is taken to be endless
MOST_TOGETHER = 64  # games, where the caller has not made them
MOST_EPISODES = 10_000_000  # more would be a list that no memory holds
RESAMPLES = 2000  # of the bootstrap


class Episode(NamedTuple):
    """One finished episode."""

    level: int
    episode_return: float
    length: int
    solved: bool
    died: bool = False  # it ended neither in success nor by the time limit


class Evaluation(NamedTuple):
    """What an agent did on a list of episodes; the interval is 95 %, bootstrapped over levels."""

    mean_return: float
    std_return: float
    solved_rate: float
    ci_low: float
    ci_high: float
    episodes: list[Episode]

    def __repr__(self) -> str:
        interval = f"95 % {self.ci_low:.2f} to {self.ci_high:.2f}"
        return (
            f"Evaluation(mean_return={self.mean_return:.2f} ({interval}), solved_rate={self.solved_rate:.1%}, "
            f"{len(self.episodes)} episodes)"
        )


OnEpisode = Callable[[Episode], None]


def check_played(episodes: int, envs: int, seed: int) -> None:
    """Raise InputError where one of what every command that plays is asked for is out of range."""
    check_range("--episodes", episodes, 1, MOST_EPISODES)
    check_range("--envs", envs, 1, MAX_ENVS)
    check_range("--seed", seed, 0, LAST_SEED)


class FrameWatcher(Protocol):
    """Sees what the agent sees, and may measure it."""

    def watch(self, observation: Observation, episode: ndarray) -> None:
        """Told before each step; `episode` `[N]` is the number of the one each environment plays, −1 for none."""


def evaluate(
    agent: Agent,
    env: Any,
    episodes: int = 500,
    seed: int = 0,
    on_episode: OnEpisode = lambda episode: None,
    levels: LevelSet | str | int | Iterable[int] = "all",
    **options: Any,
) -> Evaluation:
    """Play `episodes` episodes and sum them up.

    env: what `make_env` has made, which plays its own levels; or what it takes, played on `levels` with `options`.
    seed: of the levels drawn.
    on_episode: hears of each episode as it ends.
    """
    episodes, seed = check_integer("episodes", episodes, 1, MOST_EPISODES), check_integer("seed", seed, 0, LAST_SEED)
    is_made = callable(getattr(env, "observe", None)) and not isinstance(env, type)
    if is_made and (options or not (isinstance(levels, str) and levels == "all")):
        what = next(iter(options), "levels")
        raise InputError(f"{what} is given with an environment that is made; accepted: what make_env takes")
    games = env if is_made else make_env(env, levels, min(MOST_TOGETHER, episodes), seed, **options)
    try:
        return summarize(result_of(play_episodes(agent, games, episodes, seed, None, on_episode)))
    finally:
        if not is_made:
            games.close()


def result_of(work: Generator[None, None, T]) -> T:
    """What `work` returns, without giving way to anyone."""
    while True:
        try:
            next(work)
        except StopIteration as finished:
            return finished.value


@dataclass(frozen=True)
class Arena:
    """Where agents are scored, and for how long."""

    env: str  # as build_env takes it
    options: Mapping[str, Any]
    episodes: int
    seed: int = 0  # of the levels drawn
    most_envs: int = 64  # games side by side
    threads: int = 1  # that step them

    @property
    def num_envs(self) -> int:
        """Games side by side; no more than there are episodes."""
        return min(self.most_envs, self.episodes)


def play_levels(
    agent: Agent,
    arena: Arena,
    levels: LevelSet,
    watcher: FrameWatcher | None = None,
    full_view: bool = False,
    on_episode: OnEpisode = lambda episode: None,
) -> Generator[None, None, Evaluation]:
    """What `agent` does on `levels`, in games of its own; gives way once a step.

    `watcher` sees every frame, with `full_view` as r_I is measured on; `on_episode` hears of each episode as it ends.
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
    """The episodes in the order of the list; gives way once a step."""
    if not callable(getattr(agent, "act", None)):
        raise InputError(f"agent is {agent!r}; accepted: an agent, as load_agent makes from a name")
    check_compatible(agent, env.spec)
    check_range("--episodes", episodes, 1)
    N = env.num_envs
    levels = env.levels.draw(episodes, np.random.default_rng(seed)).tolist() if isinstance(env, LevelControl) else []
    numbers, quotas = iter(range(episodes)), [iter(range(i, episodes, N)) for i in range(N)]

    def next_episode(i: int, is_free: bool) -> int:
        """What environment `i` plays from now on, −1 for none; only level control can start it where it is not free."""
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
        env.act(checked_actions(agent.act(observation.obs, observation.first, playing), N, env.spec.num_actions))
        yield
        observation = env.observe()
        total += observation.reward
        length += 1
        is_endless = (length > LONGEST) & (playing >= 0) & ~observation.first
        if is_endless.any():
            where = f"an episode on level {level[is_endless][0]} has not ended after {LONGEST:,} steps"
            raise InputError(f"{env.spec.name}: {where}; accepted: an environment whose episodes end")
        died = observation.first & ~observation.solved & ~observation.timed_out & (playing >= 0)  # [N]
        if isinstance(agent, ConsensusAgent):
            agent.tally.record_deaths(died)
        for i in np.flatnonzero(observation.first).tolist():
            if playing[i] >= 0:
                ended = (bool(observation.solved[i]), bool(died[i]))
                episode = Episode(int(level[i]), float(total[i]), int(length[i]), *ended)
                finished[int(playing[i])] = episode
                on_episode(episode)
            playing[i] = next_episode(i, is_free=True)
            total[i], length[i], level[i] = 0.0, 0, observation.level[i]
    return [finished[number] for number in range(episodes)]


def summarize(episodes: list[Episode]) -> Evaluation:
    """Mean, spread and interval of a list of episodes."""
    returns = np.array([episode.episode_return for episode in episodes])
    low, high = mean_interval(returns, np.array([episode.level for episode in episodes]))
    std = float(returns.std(ddof=1)) if len(returns) > 1 else 0.0
    solved = float(np.mean([episode.solved for episode in episodes]))
    return Evaluation(float(returns.mean()), std, solved, low, high, episodes)


def mean_interval(value: ndarray, level: ndarray, confidence: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap of the mean of `value` `[E]`, resampling levels with all their episodes.

    A level below 0 has no name: each such episode is taken to be on a level of its own.
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
