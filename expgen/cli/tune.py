"""expgen tune RUN: choose quorum, α and temperature on levels that the players did not train on."""

from collections.abc import Sequence
from pathlib import Path

from expgen.agents.description import AgentDescription
from expgen.agents.policies import check_weights, with_weights
from expgen.agents.quorum import PAPER_QUORUM, paper_quorum
from expgen.agents.temperature import temperature_text
from expgen.cli.flags import Parser, folder, list_of, whole_number
from expgen.cli.playing_flags import PLAYING, add_playing_flags, add_weights_flag
from expgen.envs.levels import LevelSet
from expgen.errors import InputError, check_writable
from expgen.runs.agent_files import read_agent, write_agent
from expgen.runs.folder import RunFolder
from expgen.runs.progress import EpisodeMeans, Progress
from expgen.runs.shipped import bundled_agents, is_shipped
from expgen.runs.tune import Trial, best_trial, num_players, results_file, tune, tuned_agent, write_trials
from expgen.runs.tune_request import ALPHAS, Settings, TuneRequest, grid_of, levels_of
from expgen.text import text_line
from expgen.training.resources import resolve_device

COLUMNS = ("agree", "alpha", "temperature", "return", "95% interval", "solved", "explored")
WIDTHS = (8, 6, 11, 7, 14, 7, 8)


def main(argv: Sequence[str]) -> int:
    parser = Parser(
        "tune",
        description="Plays --episodes for each point of the grid: on training levels, each with the members that never "
        "saw it (needs a population trained with --member-levels bootstrap), or on --levels.",
        epilog="Writes the chosen settings to agent.json, as the agent's new defaults, and all results to tune.csv "
        "in the same folder (for an agent in NAME.json: to this file and NAME.tune.csv).",
    )
    parser.add("run", "a run folder or an agent.json", type=folder, metavar="RUN")
    defaults = TuneRequest()
    levels = (
        "play these levels, which no policy trained on, with any agent: START:COUNT, A,B,C or all unseen ones (all)"
    )
    parser.add("--levels", f"{levels}; do not report scores on levels that you chose by")
    parser.add("--quorums", "quorums to try (default all)", (), type=list_of(whole_number), metavar="A,B")
    alphas = f"values of α to try (default {','.join(map(str, ALPHAS))})"
    parser.add("--alphas", alphas, (), type=list_of(float), metavar="A,B")
    temperatures = "temperatures to try (default: the agent's own); 1: as trained, 0: the most likely action"
    parser.add("--temperatures", temperatures, (), type=list_of(float), metavar="A,B")
    add_playing_flags(parser, **{name: getattr(defaults, name) for name in PLAYING})
    add_weights_flag(parser)
    arguments = vars(parser.parse_args(argv))
    run, weights = arguments.pop("run"), arguments.pop("weights")
    request = TuneRequest(**arguments)
    _refuse_shipped(run)
    agent = with_weights(read_agent(run), weights)
    levels_played, grid = levels_of(agent, request), grid_of(agent, request)
    check_weights(agent, agent.trained())
    agent_file = run if run.is_file() else RunFolder(agent.folder).agent_file
    tune_file = results_file(agent_file)
    check_writable(tune_file)
    check_writable(agent_file)
    resolve_device(request.device)
    members = len(agent.members)
    trials: list[Trial] = []
    with Progress("episode") as progress:
        progress.start(len(grid) * request.episodes, {})
        for trial in tune(agent, request, EpisodeMeans("ensembles", progress.row)):
            progress.hide_bar()
            if not trials:
                print(_heading(agent, request, levels_played), text_line(COLUMNS, WIDTHS, ">"), sep="\n")
            trials.append(trial)
            print(_describe(trial, members), flush=True)
    picked = best_trial(trials)
    write_trials(tune_file, agent, levels_played, trials, picked)
    write_agent(tuned_agent(agent, picked), agent_file)
    print(f"picked: {_flags(picked.settings, members)}")
    if picked.settings.min_agree is not None:
        print(_paper_line(agent, members))
    return 0


def _refuse_shipped(run: Path) -> None:
    """Raise InputError for an agent of the package, by name or folder: its settings and scores are published."""
    named = None if run.exists() else bundled_agents().get(str(run))
    if named or is_shipped(run):
        folder = named.folder.path if named else run if run.is_dir() else run.parent
        raise InputError(f"RUN is {run}, a shipped agent; accepted: a copy of {folder}, a run folder or an agent.json")


def _heading(agent: AgentDescription, request: TuneRequest, levels: LevelSet) -> str:
    members = len(agent.members)
    if request.levels is None:
        return f"{len(levels)} of {len(agent.levels)} training levels are unseen by two or more of {members} members"
    played = f"{request.episodes} episode{'' if request.episodes == 1 else 's'}"
    if num_players(agent) < members:
        played += f" of member0, the first of {members} members that do not vote,"
    return f"{played} on levels {levels}, which no policy trained on"


def _flags(settings: Settings, members: int) -> str:
    """Return the flags of `expgen evaluate` for `settings`."""
    temperature = f"--temperature {temperature_text(settings.temperature)}"
    if settings.min_agree is None:
        return temperature
    vote = f"--min-agree {settings.min_agree} --alpha {settings.alpha}"
    return f"{vote} {temperature} ({settings.min_agree} of {members})"


def _paper_line(agent: AgentDescription, members: int) -> str:
    if agent.env.removeprefix("procgen:") not in PAPER_QUORUM:
        return f"the paper has no quorum for {agent.game}; for its games it has 1 to 8 of 10, and alpha 0.5"
    quorum = f"{PAPER_QUORUM[agent.game]} of 10 (here {paper_quorum(agent.env, members)})"
    return f"the paper's quorum for {agent.game}: {quorum}, alpha 0.5"


def _describe(trial: Trial, members: int) -> str:
    score, (quorum, alpha, temperature) = trial.evaluation, trial.settings
    interval = f"{score.ci_low:.2f} to {score.ci_high:.2f}"
    share = "-" if trial.counts is None else f"{trial.counts.explored_share:.0%}"
    vote = ("-", "-") if quorum is None else (f"{quorum} of {members}", alpha)
    cells = (*vote, temperature_text(temperature), f"{score.mean_return:.2f}", interval, f"{score.solved_rate:.1%}")
    return text_line((*cells, share), WIDTHS, ">")
