"""expgen tune RUN: choose quorum and α on training levels that the voting members did not train on."""

from collections.abc import Sequence

from expgen.agents.build import check_weights
from expgen.agents.quorum import PAPER_QUORUM, paper_quorum
from expgen.cli.flags import Parser, folder, list_of, whole_number
from expgen.cli.playing_flags import PLAYING, add_playing_flags, add_weights_flag
from expgen.errors import check_writable
from expgen.runs.agent_files import read_agent, write_agent
from expgen.runs.folder import RunFolder
from expgen.runs.progress import EpisodeMeans, Progress
from expgen.runs.tune import Trial, TuneRequest, best_trial, tune, tuned_agent, tuning_levels, write_trials
from expgen.text import text_line
from expgen.training.resources import resolve_device

WIDTHS = (8, 6, 7, 14, 7, 8)  # of the table's columns


def main(argv: Sequence[str]) -> int:
    parser = Parser(
        "tune",
        description="Plays --episodes for each point of the grid. Needs a population trained with "
        "--member-levels bootstrap.",
        epilog="Writes the chosen settings to agent.json, as the agent's new defaults, and all results to tune.csv "
        "in the same folder.",
    )
    parser.add("run", "a run folder or an agent.json", type=folder, metavar="RUN")
    defaults = TuneRequest()
    parser.add("--quorums", "quorums to try (default all)", (), type=list_of(whole_number), metavar="A,B")
    parser.add("--alphas", "values of α to try", defaults.alphas, type=list_of(float), metavar="A,B")
    add_playing_flags(parser, **{name: getattr(defaults, name) for name in PLAYING})
    add_weights_flag(parser)
    arguments = vars(parser.parse_args(argv))
    run = arguments.pop("run")
    request = TuneRequest(**arguments)
    agent = read_agent(run)
    seen, levels = tuning_levels(agent)
    check_weights(agent, agent.trained(), request.weights)
    tune_file = RunFolder(agent.folder).tune_file
    agent_file = run if run.is_file() else RunFolder(agent.folder).agent_file
    check_writable(tune_file)
    check_writable(agent_file)
    resolve_device(request.device)
    print(f"{len(levels)} of {len(agent.levels)} training levels are unseen by two or more of {len(seen)} members")
    print(text_line(("agree", "alpha", "return", "95% interval", "solved", "explored"), WIDTHS, ">"))
    trials, total = [], len(request.quorums or seen) * len(request.alphas) * request.episodes
    with Progress("episode") as progress:
        progress.start(total, {})
        for trial in tune(agent, request, EpisodeMeans("ensembles", progress.row)):
            trials.append(trial)
            progress.hide_bar()
            print(_describe(trial, len(seen)), flush=True)
    picked = best_trial(trials)
    write_trials(tune_file, len(seen), trials, picked, request.weights or agent.weights)
    write_agent(tuned_agent(agent, picked), agent_file)
    print(f"picked: --min-agree {picked.min_agree} --alpha {picked.alpha} ({picked.min_agree} of {len(seen)})")
    print(_paper_line(agent.game, agent.env, len(seen)))
    return 0


def _paper_line(game: str, env: str, members: int) -> str:
    if env.removeprefix("procgen:") not in PAPER_QUORUM:
        return f"the paper has no quorum for {game}; for its games it has 1 to 8 of 10, and alpha 0.5"
    return f"the paper's quorum for {game}: {PAPER_QUORUM[game]} of 10 (here {paper_quorum(env, members)}), alpha 0.5"


def _describe(trial: Trial, members: int) -> str:
    score = trial.evaluation
    interval = f"{score.ci_low:.2f} to {score.ci_high:.2f}"
    share = f"{trial.counts.explored_share:.0%}"
    agree = f"{trial.min_agree} of {members}"
    cells = (agree, trial.alpha, f"{score.mean_return:.2f}", interval, f"{score.solved_rate:.1%}", share)
    return text_line(cells, WIDTHS, ">")
