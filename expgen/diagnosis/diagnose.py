"""diagnose: measure the members, votes and explorer of a run on unseen levels; report in words and as a figure."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from expgen.agents.consensus import ConsensusAgent
from expgen.agents.policies import check_trained
from expgen.diagnosis.advice import Finding, findings
from expgen.diagnosis.figure import draw
from expgen.diagnosis.measure import Measurements, Play, VoteRecorder, explorer_reward, player_factories
from expgen.errors import InputError
from expgen.evaluation.evaluate import OnEpisode, arena_of, check_play_flags, play_levels, result_of
from expgen.exploration.explore import ExplorationWatcher
from expgen.exploration.oracle import make_oracle
from expgen.files import write_atomic
from expgen.report.style import figure_files
from expgen.runs.shipped import find_agent
from expgen.storage.location import Location

FIGURE_FORMATS = (".png", ".svg")


@dataclass(frozen=True)
class Diagnosis:
    """Measurements and findings; `print` shows the findings."""

    measured: Measurements
    findings: list[Finding]  # the verdict first

    def __str__(self) -> str:
        lines = []
        for about, what, change in self.findings:
            lines.append(f"{about}: {what}")
            lines += [f"  change: {change}"] if change else []
        return "\n".join(lines)

    def figure(self) -> Figure:
        """Return a figure with three panels: returns, agreement and coverage."""
        return draw(self.measured)

    def save(self, file: Path | str) -> None:
        """Write the figure as .png or .svg."""
        file = Path(file)
        check_figure_file(file)
        write_atomic(file, figure_files(self.figure())[file.suffix])


def diagnose(
    run: Location,
    episodes: int = 100,
    seed: int = 0,
    envs: int = 64,
    device: str = "cpu",
    on_start: Callable[[int], None] = lambda episodes: None,
    on_episode: OnEpisode = lambda episode: None,
) -> Diagnosis:
    """Play the policies of `run` and find whether ExpGen helps there, why or why not, and what to change.

    run: a run folder, its URL, an agent.json or the name of a shipped agent.
    episodes: number per player and split. seed: random seed for choosing levels and sampling actions.
    envs: number of parallel environments. device: auto, cpu, cuda or cuda:N.
    on_start: called with the total number of episodes. on_episode: called with each finished episode.
    """
    check_play_flags(episodes, envs, seed)
    agent = find_agent(run).agent
    check_trained(agent, run)
    arena = arena_of(agent, episodes, seed, envs, device)
    players = player_factories(agent, seed, device)
    on_start(len(players) * len(agent.splits) * episodes)
    reward, oracle = explorer_reward(agent), make_oracle(agent.env, **agent.options)
    plays, votes = [], None
    for split, (name, make_player) in itertools.product(agent.splits, players.items()):
        player = make_player()
        recorder = VoteRecorder(player) if isinstance(player, ConsensusAgent) else None
        explores = name in ("explorer", "random")
        watcher = ExplorationWatcher(reward, arena.num_envs, episodes) if explores else None
        levels = agent.levels_of(split)
        evaluation = result_of(play_levels(recorder or player, arena, levels, watcher, explores, on_episode))
        exploration = watcher.exploration(evaluation.episodes, oracle) if watcher else None
        plays.append(Play(name, split, evaluation, exploration))
        votes = recorder.votes(evaluation.episodes) if recorder else votes
    measured = Measurements(str(run), agent.env, episodes, tuple(plays), votes, reward.end_value)
    return Diagnosis(measured, findings(measured))


def check_figure_file(file: Path) -> None:
    """Raise InputError unless `file` has the suffix of a supported figure format."""
    if file.suffix not in FIGURE_FORMATS:
        raise InputError(f"--out is {str(file)!r}; accepted: a file that ends in {' or '.join(FIGURE_FORMATS)}")
