"""Choosing the quorum and α without a test level: training levels as played by the members that never saw them.

A population trained with `--member-levels bootstrap` leaves each training level to about 37 % of its members unseen.
Those vote on it (agents.panel), so that their agreement is what it would be on a new level. Where the explorer they
fall back on has left out levels too (an adopted one may have), only these are played; where it has trained
on every level, what it has learnt of them is in these scores.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from expgen.agents.consensus import TABLE_ALPHA, ConsensusAgent
from expgen.agents.panel import OutOfBag, panel_levels
from expgen.envs.levels import LevelSet
from expgen.envs.make import make_env
from expgen.errors import InputError
from expgen.evaluation.evaluate import OnEpisode, check_played, play_episodes, result_of, summarize
from expgen.runs.adopt import plans_in
from expgen.runs.config import EXPLORER, TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.load import load_policies
from expgen.runs.tuned import Trial
from expgen.training.average import Weights
from expgen.training.resources import plan_resources


@dataclass(frozen=True)
class TuneRequest:
    """The grid, and how long each of its points is played."""

    quorums: Sequence[int] = ()  # none: every one there is
    alphas: Sequence[float] = (0.2, TABLE_ALPHA, 0.8)  # those the paper tried
    episodes: int = 400  # of each point, the same levels and the same noise for all
    seed: int = 0
    envs: int = 64
    device: str = "cpu"
    weights: Weights = "live"  # or those averaged, of every policy that has them

    def __post_init__(self) -> None:
        check_played(self.episodes, self.envs, self.seed)
        for alpha in self.alphas:
            if not 1e-3 <= alpha <= 1:
                raise InputError(f"--alphas has {alpha}; accepted: numbers from 0.001 to 1")


def tune(folder: RunFolder, request: TuneRequest, on_episode: OnEpisode = lambda episode: None) -> Iterator[Trial]:
    """Every point of the grid in turn; `on_episode` hears of each episode as it ends."""
    config, spec = folder.read_config()
    seen, levels = left_out(folder, config)
    quorums = request.quorums or range(1, len(seen) + 1)
    for quorum in quorums:
        if not 1 <= quorum <= len(seen):
            raise InputError(f"--quorums has {quorum}; accepted: 1 to {len(seen)}")
    assert config.consensus is not None
    names = [f"member{index}" for index in range(len(seen))]
    names += [EXPLORER] if config.consensus.fallback == "explorer" else []
    policies = [policy for policy, _ in load_policies(folder, names, request.device, request.weights)]
    members, explorer = policies[: len(seen)], policies[len(seen)] if policies[len(seen) :] else None
    threads, num_envs = plan_resources(request.device, 1).env_threads, min(request.envs, request.episodes)
    for quorum in quorums:
        for alpha in request.alphas:
            panels = OutOfBag(seen, levels, quorum)
            settings = replace(config.consensus, min_agree=quorum, alpha=alpha)
            agent = ConsensusAgent(members, explorer, spec, settings, request.seed, panels)
            env = make_env(config.env, levels, num_envs, request.seed, threads, **config.options)
            try:
                episodes = result_of(play_episodes(agent, env, request.episodes, request.seed, panels, on_episode))
            finally:
                env.close()
            yield Trial(quorum, alpha, summarize(episodes), agent.tally.total())


def left_out(folder: RunFolder, config: TrainConfig) -> tuple[list[LevelSet], LevelSet]:
    """What each member has seen, and the training levels that two or more of them have not, nor the explorer if it can.

    An explorer that has seen every level leaves none out; then its having seen them is put up with.
    """
    if config.consensus is None:
        raise InputError(f"{folder.path} is a run of --algo {config.algo}; accepted: one with an ensemble, as expgen")
    plans = {plan.name: plan.levels for plan in plans_in(folder, config)}
    explored = plans.pop(EXPLORER, LevelSet(()))
    seen = list(plans.values())
    unexplored = tuple(level for level in config.train_set.seeds or () if level not in explored)
    levels = panel_levels(seen, LevelSet(unexplored) if unexplored else config.train_set)
    if not levels.seeds:
        accepted = "a population trained with --member-levels bootstrap"
        raise InputError(f"{folder.path} has no training level that two members never saw; accepted: {accepted}")
    return seen, levels


def best(trials: Sequence[Trial]) -> Trial:
    """The highest mean return; of equals the lowest quorum, then the α nearest to the paper's.

    The lowest, since all of a small panel agree more easily than all of the ensemble it stands for.
    """
    return min(trials, key=lambda t: (-t.evaluation.mean_return, t.min_agree, abs(t.alpha - TABLE_ALPHA)))
