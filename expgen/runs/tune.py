"""tune: choose quorum, α and temperature on levels that the players never saw.

Without `levels` these are training levels, each played by the members that never saw it. In a population trained with
`--member-levels bootstrap` about 37 % of the members never saw a given training level. Only these vote on it
(agents.out_of_bag), so they agree as they would on a new level. If the explorers also left out levels (when they were
trained separately), only those levels are played; otherwise the explorers have trained on the levels and the scores
include what they learnt of them.

With `levels`, which no policy may have trained on, the whole agent plays, whatever it is made of. Their scores are then
spent: report the chosen agent on other levels. From `all` unseen levels tune draws others than `expgen evaluate` does,
with other noise (`play_seed`), so the seed of a later evaluation may be the same.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from expgen.agents.agent import Agent
from expgen.agents.build import build_agent, policy_names
from expgen.agents.consensus import TABLE_ALPHA, ConsensusAgent
from expgen.agents.decision import Counts
from expgen.agents.description import AGENT_FILE, AgentDescription
from expgen.agents.out_of_bag import OutOfBag
from expgen.agents.policies import load_policies
from expgen.agents.temperature import AS_TRAINED
from expgen.envs.levels import LevelSet
from expgen.evaluation.evaluate import Evaluation, OnEpisode, arena_of, play_levels, result_of
from expgen.files import write_atomic
from expgen.provenance import commit
from expgen.random import TUNING, stream_seed
from expgen.runs.folder import RunFolder
from expgen.runs.tune_request import Settings, TuneRequest, grid_of, levels_of
from expgen.settings import LAST_SEED

COLUMNS = (
    "min_agree", "members", "alpha", "temperature", "levels", "episodes", "mean_return", "solved_rate", "ci_low",
    "ci_high", "explored_share", "weights", "picked", "commit",
)  # fmt: skip


class Trial(NamedTuple):
    """One point of the grid and its result."""

    settings: Settings
    evaluation: Evaluation
    counts: Counts | None = None  # None without a vote


def tune(
    agent: AgentDescription, request: TuneRequest, on_episode: OnEpisode = lambda episode: None
) -> Iterator[Trial]:
    """Play every point of the grid in turn; `on_episode` is called after each episode."""
    grid, levels = grid_of(agent, request), levels_of(agent, request)
    seed = play_seed(request.seed, levels)
    arena = arena_of(agent, request.episodes, seed, request.envs, request.device)

    def play(settings: Settings) -> Trial:
        tuned = with_settings(agent, settings)
        player: Agent
        if request.levels is None:
            player, panels = _held_out_voters(tuned, levels, seed, request.device)
        else:
            player, panels = build_agent(tuned, None, seed, request.device).agent, None
        evaluation = result_of(play_levels(player, arena, levels, panels, on_episode=on_episode))
        return Trial(settings, evaluation, player.tally if isinstance(player, ConsensusAgent) else None)

    return map(play, grid)


def _held_out_voters(
    agent: AgentDescription, levels: LevelSet, seed: int, device: str
) -> tuple[ConsensusAgent, OutOfBag]:
    """Return an agent in which on each of the training levels `levels` only members vote that never saw it."""
    assert agent.consensus is not None
    names = policy_names(agent, replace(agent.consensus, ensemble_size=0))
    policies, _ = load_policies(agent, names, device)
    seen = [member.levels for member in agent.members]
    panels = OutOfBag(seen, levels, agent.consensus.min_agree)
    members, explorers = policies[: len(seen)], policies[len(seen) :]
    return ConsensusAgent(members, explorers, agent.spec, agent.consensus, seed, panels), panels


def play_seed(seed: int, levels: LevelSet) -> int:
    """Return the seed that draws tune's levels and noise: `seed` for a finite set, one derived from it for `all`.

    Every evaluation with the same seed starts with the same levels of an open set, and would report the score of the
    chosen settings on the episodes that they were chosen by.
    """
    return seed if levels.seeds is not None else stream_seed(seed, TUNING) % (LAST_SEED + 1)


def best_trial(trials: Sequence[Trial]) -> Trial:
    """Return the trial with the highest mean return; of equals the one closest to the paper's settings.

    That is the lowest quorum, since a small panel reaches a high quorum more easily than the whole ensemble would, then
    the α nearest to the paper's, then the temperature nearest to that of training.
    """

    def rank(trial: Trial) -> tuple[float, ...]:
        quorum, alpha, temperature = trial.settings
        distance = 0.0 if alpha is None else abs(alpha - TABLE_ALPHA)
        return -trial.evaluation.mean_return, quorum or 0, distance, abs(temperature - AS_TRAINED)

    return min(trials, key=rank)


def num_players(agent: AgentDescription) -> int:
    """Return how many of its members play: all together, or the first alone if they are agents of their own."""
    return len(agent.members) if agent.consensus is not None else 1


def results_file(agent_file: Path) -> Path:
    """Return the file for the results of tuning `agent_file`: tune.csv for agent.json, mine.tune.csv for mine.json."""
    own = agent_file.with_suffix(".tune.csv")
    return RunFolder(agent_file.parent).tune_file if agent_file.name == AGENT_FILE else own


def with_settings(agent: AgentDescription, settings: Settings) -> AgentDescription:
    """Return `agent` with these settings."""
    agent = replace(agent, temperature=settings.temperature)
    if settings.min_agree is None or settings.alpha is None:
        return agent
    assert agent.consensus is not None
    return replace(agent, consensus=replace(agent.consensus, min_agree=settings.min_agree, alpha=settings.alpha))


def tuned_agent(agent: AgentDescription, picked: Trial) -> AgentDescription:
    """Return `agent` with the settings of the picked trial; those of a vote are marked as tuned."""
    tuned = () if picked.settings.min_agree is None else ("min_agree", "alpha")
    return replace(with_settings(agent, picked.settings), tuned=tuned)


def write_trials(file: Path, agent: AgentDescription, levels: LevelSet, trials: Sequence[Trial], picked: Trial) -> None:
    """Write one row per trial to `file`; the column `picked` is 1 in the row of `picked`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for trial in trials:
        score, (quorum, alpha, temperature) = trial.evaluation, trial.settings
        explored = "" if trial.counts is None else f"{trial.counts.explored_share:.6g}"
        row = [quorum, num_players(agent), alpha, f"{temperature:g}", levels, len(score.episodes)]
        values = (score.mean_return, score.solved_rate, score.ci_low, score.ci_high)
        row += [*(f"{value:.6g}" for value in values), explored, agent.weights, int(trial is picked), commit()]
        writer.writerow(row)
    write_atomic(file, text.getvalue().encode())
