"""Choosing the quorum and α without a test level: training levels as played by the members that never saw them.

A population trained with `--member-levels bootstrap` leaves each training level to about 37 % of its members unseen.
Those vote on it (agents.out_of_bag), so that their agreement is what it would be on a new level. Where the explorer
they fall back on has left out levels too (one trained apart may have), only these are played; where it has trained on
every level, what it has learnt of them is in these scores.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from expgen.agents.build import load_policies, policy_names
from expgen.agents.consensus import TABLE_ALPHA, ConsensusAgent
from expgen.agents.decision import Counts
from expgen.agents.description import AgentDescription
from expgen.agents.out_of_bag import OutOfBag, panel_levels
from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.evaluation.evaluate import Arena, Evaluation, OnEpisode, check_play_flags, play_levels, result_of
from expgen.files import write_atomic
from expgen.provenance import commit
from expgen.training.average import Weights
from expgen.training.resources import plan_resources

COLUMNS = (
    *("min_agree", "members", "alpha", "episodes", "mean_return", "solved_rate", "ci_low", "ci_high"),
    *("explored_share", "weights", "picked", "commit"),
)


@dataclass(frozen=True)
class TuneRequest:
    """The grid, and how long each of its points is played."""

    quorums: Sequence[int] = ()  # none: every one there is
    alphas: Sequence[float] = (0.2, TABLE_ALPHA, 0.8)  # those the paper tried
    episodes: int = 400  # of each point, the same levels and the same noise for all
    seed: int = 0
    envs: int = 64
    device: str = "cpu"
    weights: Weights | None = None  # live or averaged ones; None: what the agent plays with

    def __post_init__(self) -> None:
        check_play_flags(self.episodes, self.envs, self.seed)
        for alpha in self.alphas:
            if not 1e-3 <= alpha <= 1:
                raise InputError(f"--alphas has {alpha}; accepted: numbers from 0.001 to 1")


class Trial(NamedTuple):
    """One point of the grid and what came of it."""

    min_agree: int  # of the whole ensemble
    alpha: float
    evaluation: Evaluation
    counts: Counts


def tune(
    agent: AgentDescription, request: TuneRequest, on_episode: OnEpisode = lambda episode: None
) -> Iterator[Trial]:
    """Every point of the grid in turn; `on_episode` hears of each episode as it ends."""
    seen, levels = left_out(agent)
    quorums = request.quorums or range(1, len(seen) + 1)
    for quorum in quorums:
        if not 1 <= quorum <= len(seen):
            raise InputError(f"--quorums has {quorum}; accepted: 1 to {len(seen)}")
    assert agent.consensus is not None
    names = policy_names(agent, replace(agent.consensus, ensemble_size=0))
    policies, _ = load_policies(agent, names, request.device, request.weights or agent.weights)
    members, explorers = policies[: len(seen)], policies[len(seen) :]
    threads = plan_resources(request.device, 1).env_threads
    arena = Arena(agent.env, agent.options, request.episodes, request.seed, request.envs, threads)
    for quorum in quorums:
        for alpha in request.alphas:
            panels = OutOfBag(seen, levels, quorum)
            settings = replace(agent.consensus, min_agree=quorum, alpha=alpha)
            voters = ConsensusAgent(members, explorers, agent.spec, settings, request.seed, panels)
            evaluation = result_of(play_levels(voters, arena, levels, panels, on_episode=on_episode))
            yield Trial(quorum, alpha, evaluation, voters.tally)


def left_out(agent: AgentDescription) -> tuple[list[LevelSet], LevelSet]:
    """What each member has seen, and the training levels that two or more of them have not, nor the explorer if it can.

    An explorer that has seen every level leaves none out; then its having seen them is put up with.
    """
    if agent.consensus is None or not agent.members:
        raise InputError(f"{agent.folder} is a run of --algo {agent.algo}; accepted: one with an ensemble, as expgen")
    explored = [explorer.levels for explorer in agent.explorers]
    seen = [member.levels for member in agent.members]
    unexplored = tuple(level for level in agent.levels.seeds or () if not any(level in levels for levels in explored))
    levels = panel_levels(seen, LevelSet(unexplored) if unexplored else agent.levels)
    if not levels.seeds:
        accepted = "a population trained with --member-levels bootstrap"
        raise InputError(f"{agent.folder} has no training level that two members never saw; accepted: {accepted}")
    return seen, levels


def best(trials: Sequence[Trial]) -> Trial:
    """The highest mean return; of equals the lowest quorum, then the α nearest to the paper's.

    The lowest, since all of a small panel agree more easily than all of the ensemble it stands for.
    """
    return min(trials, key=lambda t: (-t.evaluation.mean_return, t.min_agree, abs(t.alpha - TABLE_ALPHA)))


def tuned_agent(agent: AgentDescription, picked: Trial) -> AgentDescription:
    """`agent` as it votes from now on."""
    assert agent.consensus is not None
    consensus = replace(agent.consensus, min_agree=picked.min_agree, alpha=picked.alpha)
    return replace(agent, consensus=consensus, tuned=("min_agree", "alpha"))


def write_trials(file: Path, members: int, trials: Sequence[Trial], picked: Trial, weights: Weights) -> None:
    """Keep the grid, one row a point, as it was played with `weights`; `picked` is 1 in one of them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for trial in trials:
        score = trial.evaluation
        numbers = (score.mean_return, score.solved_rate, score.ci_low, score.ci_high, trial.counts.explored_share)
        shown = (f"{number:.6g}" for number in numbers)
        where = (trial.min_agree, members, trial.alpha, len(score.episodes))
        writer.writerow([*where, *shown, weights, int(trial is picked), commit()])
    write_atomic(file, text.getvalue().encode())
