"""tune: choose quorum and α on training levels, each played by the members that never saw it.

In a population trained with `--member-levels bootstrap` about 37 % of the members never saw a given training level.
Only these vote on it (agents.out_of_bag), so they agree as they would on a new level. If the explorers also left out
levels (when they were trained separately), only those levels are played; otherwise the explorers have trained on the
levels and the scores include what they learnt of them.
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
    "min_agree", "members", "alpha", "episodes", "mean_return", "solved_rate", "ci_low", "ci_high", "explored_share",
    "weights", "picked", "commit",
)  # fmt: skip


@dataclass(frozen=True)
class TuneRequest:
    """The grid of settings to try, and how to play each."""

    quorums: Sequence[int] = ()  # empty: all from 1 to the number of members
    alphas: Sequence[float] = (0.2, TABLE_ALPHA, 0.8)  # those that the paper tried
    episodes: int = 400  # per trial; all trials have the same levels and random numbers
    seed: int = 0
    envs: int = 64
    device: str = "cpu"
    weights: Weights | None = None  # live or averaged; None: those in agent.json

    def __post_init__(self) -> None:
        check_play_flags(self.episodes, self.envs, self.seed)
        for alpha in self.alphas:
            if not 1e-3 <= alpha <= 1:
                raise InputError(f"--alphas has {alpha}; accepted: numbers from 0.001 to 1")


class Trial(NamedTuple):
    """One point of the grid and its result."""

    min_agree: int  # quorum of the whole ensemble
    alpha: float
    evaluation: Evaluation
    counts: Counts


def tune(
    agent: AgentDescription, request: TuneRequest, on_episode: OnEpisode = lambda episode: None
) -> Iterator[Trial]:
    """Play every point of the grid in turn; `on_episode` is called after each episode."""
    seen, levels = tuning_levels(agent)
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


def tuning_levels(agent: AgentDescription) -> tuple[list[LevelSet], LevelSet]:
    """Return the levels each member has seen, and the training levels that two or more members have not seen.

    If there are training levels that no explorer has seen, only those are considered.
    """
    if agent.consensus is None or not agent.members:
        raise InputError(
            f"{agent.folder} is a run of --algo {agent.algo}; accepted: an ensemble, such as --algo expgen"
        )
    explored = [explorer.levels for explorer in agent.explorers]
    seen = [member.levels for member in agent.members]
    unexplored = tuple(level for level in agent.levels.seeds or () if not any(level in levels for levels in explored))
    levels = panel_levels(seen, LevelSet(unexplored) if unexplored else agent.levels)
    if not levels.seeds:
        accepted = "a population trained with --member-levels bootstrap"
        raise InputError(f"{agent.folder} has no training level that two members never saw; accepted: {accepted}")
    return seen, levels


def best_trial(trials: Sequence[Trial]) -> Trial:
    """Return the trial with the highest mean return; of equals the lowest quorum, then the α nearest to the paper's.

    The lowest quorum, since a small panel reaches a high quorum more easily than the whole ensemble would.
    """
    return min(trials, key=lambda t: (-t.evaluation.mean_return, t.min_agree, abs(t.alpha - TABLE_ALPHA)))


def tuned_agent(agent: AgentDescription, picked: Trial) -> AgentDescription:
    """Return `agent` with the settings of the picked trial."""
    assert agent.consensus is not None
    consensus = replace(agent.consensus, min_agree=picked.min_agree, alpha=picked.alpha)
    return replace(agent, consensus=consensus, tuned=("min_agree", "alpha"))


def write_trials(file: Path, members: int, trials: Sequence[Trial], picked: Trial, weights: Weights) -> None:
    """Write one row per trial to tune.csv; the column `picked` is 1 in the row of `picked`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for trial in trials:
        score = trial.evaluation
        values = (score.mean_return, score.solved_rate, score.ci_low, score.ci_high, trial.counts.explored_share)
        row = [trial.min_agree, members, trial.alpha, len(score.episodes), *(f"{value:.6g}" for value in values)]
        writer.writerow([*row, weights, int(trial is picked), commit()])
    write_atomic(file, text.getvalue().encode())
