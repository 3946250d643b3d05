"""expgen evaluate RUN_OR_AGENT: play unseen or training levels and append rows to scores.csv."""

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from expgen.agents.consensus import ConsensusAgent
from expgen.agents.description import AgentDescription
from expgen.cli.flags import Parser, add_engine_flags, folder, pop_engine
from expgen.cli.playing_flags import add_agent_argument, add_ensemble_flags, add_playing_flags, request_of
from expgen.cluster.engine import Task
from expgen.errors import InputError
from expgen.evaluation.deaths import Deaths
from expgen.evaluation.scores import SPLITS, Score, agent_name, check_can_append
from expgen.exploration.explore import Exploration
from expgen.runs.progress import EpisodeMeans, Progress
from expgen.runs.request import EvaluationRequest, score_all, single_requests
from expgen.runs.scoring import ScoredAgent, save_scores
from expgen.runs.shipped import FoundAgent, find_agent
from expgen.storage.location import Location, is_url, join
from expgen.storage.view import check_not_busy, edit_run
from expgen.text import text_line
from expgen.training.loop import Watcher

COLUMNS = ("agent", "split", "levels", "steps", "episodes", "return", "95% interval", "solved")
NAME_WIDTH = 17  # of most names


def main(argv: Sequence[str]) -> int:
    parser = Parser("evaluate", description="Print its scores and append them to scores.csv.")
    add_agent_argument(parser)
    parser.add("--split", "play training levels (train) or unseen ones (test) (default test)", choices=SPLITS)
    levels = "evaluate on these levels instead: COUNT, START:COUNT, A,B,C or all"
    parser.add("--levels", f"{levels}; they must be all training levels or all unseen")
    add_playing_flags(parser, episodes=500, seed=0, envs=64, device="cpu")
    parser.add("--learner", "policy to play: member0, …, explorer or each (default: the ensemble, else each member)")
    scores_help = "file to append rows to (default RUN/scores.csv; none for a bundled agent)"
    parser.add("--scores", scores_help, type=folder, metavar="FILE")
    add_ensemble_flags(parser)
    add_engine_flags(parser)
    arguments = vars(parser.parse_args(argv))
    engine = pop_engine(arguments)
    found, scores = find_agent(arguments.pop("run")), arguments.pop("scores")
    if not found.is_bundled and scores is None:
        where = found.location if is_url(found.location) else found.agent.folder
        scores = join(where, found.folder.scores_file.name)
        if is_url(found.location):
            check_not_busy(str(found.location))
    if scores is not None:
        _check_scores_file(found, scores)
    arguments["learner"] = found.learner if arguments["learner"] is None else arguments["learner"]
    request = request_of(EvaluationRequest, arguments)
    requests = single_requests(found.agent, request)
    width = 0  # of the column of names; set by the first row
    tasks = [Task(one.learner or "agent", partial(_play, _portable(found), one)) for one in requests]
    with Progress("episode") as progress:
        progress.start(len(tasks) * request.episodes, {})
        for ended in engine.run(tasks, Watcher(on_row=progress.row)):
            scored, remarks = ended.result()
            score = scored.score
            progress.hide_bar()
            header = [] if width else [COLUMNS]
            width = width or max(NAME_WIDTH, len(agent_name(score)))
            try:
                for cells in (*header, _cells(score)):
                    print(text_line(cells, (width, 6, 14, 11, 9, 7, 14, 7), ">"))
                print(*remarks, sep="\n", end="\n" * bool(remarks), flush=True)
            finally:  # the row is kept if it cannot be printed, and printed if it cannot be kept
                if scores is not None:
                    _append(scores, scored)
            means = {"episode_return": score.mean_return, "episode_solved": score.solved_rate}
            progress.row(ended.task.name, {"episodes": score.episodes, **means})  # the only report of a cluster task
    return 0


def _check_scores_file(found: FoundAgent, scores: Location) -> None:
    """Raise InputError if rows cannot be appended to `scores`; for a URL, check the downloaded file."""
    try:
        check_can_append(found.folder.scores_file if is_url(scores) else Path(scores))
    except InputError as error:
        raise type(error)(f"{error}, or another --scores FILE") from None


def _append(scores: Location, scored: ScoredAgent) -> None:
    if not is_url(scores):
        save_scores(Path(scores), [scored])
        return
    url, _, name = str(scores).rpartition("/")
    try:
        edit_run(url, lambda folder: save_scores(folder / name, [scored]))
    except InputError as error:
        raise type(error)(f"{error}; the row of {scored.score.agent} was not written") from None


def _portable(found: FoundAgent) -> AgentDescription | str:
    """Return the agent with an absolute path, or its URL, so that a task on another machine can load it."""
    folder = found.agent.folder.absolute()
    return str(found.location) if is_url(found.location) else dataclasses.replace(found.agent, folder=folder)


def _play(agent: AgentDescription | str, request: EvaluationRequest, watcher: Watcher) -> tuple[ScoredAgent, list[str]]:
    """Evaluate one request; return its score, which only the main process writes, and remarks to print."""
    described = find_agent(agent).agent if isinstance(agent, str) else agent
    (scored,) = score_all(described, request, EpisodeMeans(request.learner or "agent", watcher.on_row))
    remarks = [_explain(scored.agent, scored.deaths)] if isinstance(scored.agent, ConsensusAgent) else []
    if scored.exploration is not None:
        remarks.append(_explored(scored.exploration))
    return scored._replace(agent=None), remarks  # policies are not sent back


def _explain(agent: ConsensusAgent, deaths: Deaths | None) -> str:
    counts, members = agent.tally, len(agent.ensemble.members)
    votes = f"{agent.quorum} of {members} agreed in {counts.agreement_rate:.0%} of the votes"
    if agent.config.once:
        votes += f", {counts.set_aside_share:.0%} of these set aside (frames on which the ensemble had acted)"
    if agent.quorum > members:
        votes = f"the quorum of {agent.quorum} is larger than the ensemble of {members}"
    text = f"{votes}; {counts.explored_share:.0%} of the steps explored, {counts.mean_stretch:.1f} in a row"
    if agent.config.hedge:
        text += f", {counts.hedged_share:.0%} of these hedged"
    if deaths and deaths.all:
        text += f"; {deaths.all} deaths, {deaths.while_exploring} of them while exploring"
    return text


def _explored(exploration: Exploration) -> str:
    intrinsic, share = exploration.intrinsic_return, exploration.oracle_share
    text = f"intrinsic return {intrinsic.value:.2f} ({intrinsic.ci_low:.2f} to {intrinsic.ci_high:.2f})"
    if share is not None and exploration.oracle_success is not None:
        text += f"; {share.value:.0%} of the oracle's, all of it in {exploration.oracle_success.value:.0%} of episodes"
    return text


def _cells(row: Score) -> tuple[object, ...]:
    interval = f"{row.ci_low:.2f} to {row.ci_high:.2f}"
    levels = row.levels if row.levels.count(",") < 3 else f"{row.levels.count(',') + 1} listed"
    cells = (agent_name(row), row.split, levels, f"{row.env_steps:,}", row.episodes, f"{row.mean_return:.2f}", interval)
    return (*cells, f"{row.solved_rate:.1%}")
