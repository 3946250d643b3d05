"""measure: every figure of one trained population, on its training levels and by both of the paper's test protocols.

The full distribution of levels is `all`; the original code scored on levels 201 to 400. The figures are independent of
each other and shared out to processes, each with its part of the cores.
"""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from expgen.agents.build import checkpoint_of, consensus_of, players_of
from expgen.agents.description import AgentDescription
from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.evaluation.scores import Score, rows_so_far, settings_text, without_asides
from expgen.runs.request import EvaluationRequest, score_all
from expgen.runs.scoring import ScoredAgent, keep_scores

TRAINED_LEVELS, NEXT_LEVELS = "0:200", "201:200"  # what the original code trains and tests on
SIZES, ALPHAS = (4, 6, 8), (0.2, 0.8)
SIZE_LEADERS = 3  # leaders that each size of ensemble is scored with


@dataclass(frozen=True)
class Figure:
    """One player on one set of levels; its row is found again by what is here."""

    env: str
    agent: str
    settings: str
    env_steps: int
    request: EvaluationRequest

    def is_in(self, row: Score) -> bool:
        """Whether `row` is this figure."""
        asked, levels = self.request, self.request.levels
        who = (self.env, self.agent, self.settings, self.env_steps, asked.split, asked.episodes)
        found = (row.env, row.agent, without_asides(row.settings), row.env_steps, row.split, row.episodes)
        return who == found and (levels == row.levels if levels else row.levels != NEXT_LEVELS)


def measured_steps(agent: AgentDescription) -> dict[str, int]:
    """The steps that each policy was trained for so far."""
    return {name: int(checkpoint_of(agent, name).facts["env_steps"]) for name in agent.trained()}


def figures_of(agent: AgentDescription, steps: Mapping[str, int], **played: Any) -> list[Figure]:
    """What there is to measure of a population whose policies were trained for `steps`.

    `played` goes into every EvaluationRequest.
    """
    if agent.consensus is None or not agent.members:
        raise InputError(f"the run trained {agent.algo}; accepted: a population with an explorer, such as expgen")
    members = len(agent.members)
    alone: list[dict[str, Any]] = [{"learner": name, "seed": index} for index, name in enumerate(agent.policies)]
    leaders = [_ensemble(leader=leader) for leader in range(members)]
    randomly = [_ensemble(leader=leader, fallback="random") for leader in range(members)]
    sizes = [
        _ensemble(leader=leader, ensemble_size=size)
        for size in SIZES
        if size < members
        for leader in range(min(size, SIZE_LEADERS))
    ]
    quorums = [_ensemble(min_agree=quorum) for quorum in range(2, members + 1)]
    stretches = [_ensemble(alpha=alpha) for alpha in ALPHAS] + [_ensemble(stretch="geometric")]
    everywhere: list[dict[str, Any]] = [{"split": "train"}, {"split": "test"}]
    if agent.levels == LevelSet.parse(TRAINED_LEVELS):
        everywhere.append({"split": "test", "levels": NEXT_LEVELS})
    asked = [{**who, **where} for who in (*alone, *leaders) for where in everywhere]
    asked += [{**who, "split": "test"} for who in (*randomly, *sizes, *quorums, *stretches)]
    return [_figure(agent, steps, {**played, **words}) for words in asked]


def _ensemble(**consensus: Any) -> dict[str, Any]:
    return {"consensus": consensus, "seed": consensus.get("leader", 0)}


def _figure(agent: AgentDescription, steps: Mapping[str, int], words: dict[str, Any]) -> Figure:
    request = EvaluationRequest(**words)
    if request.learner is not None:
        return Figure(agent.env, request.learner, "", steps[request.learner], request)
    players = players_of(agent, consensus_of(agent, request.consensus))
    settings = settings_text(request.consensus)
    return Figure(agent.env, agent.algo, settings, sum(steps[name] for name in players), request)


def measure(agent: AgentDescription, figures: list[Figure], scores: Path, workers: int) -> Iterator[list[Score]]:
    """The rows of each figure that `scores` does not have yet, as they come; they are added there."""
    known = rows_so_far(scores)
    missing = [figure for figure in figures if not any(figure.is_in(row) for row in known)]
    cores = sorted(os.sched_getaffinity(0))
    shares = [cores[index::workers] or cores for index in range(workers)]
    context = get_context("spawn")  # a process that has used a GPU cannot be forked
    queue = context.SimpleQueue()
    for share in shares:
        queue.put(share)
    with ProcessPoolExecutor(workers, context, _keep_to_cores, (queue,)) as pool:
        for done in as_completed([pool.submit(_play, agent, figure.request) for figure in missing]):
            keep_scores(scores, done.result())
            yield [one.score for one in done.result()]


def _play(agent: AgentDescription, request: EvaluationRequest) -> list[ScoredAgent]:
    return [scored._replace(agent=None) for scored in score_all(agent, request)]


def _keep_to_cores(shares: Any) -> None:
    """This process's part of the machine; environments and products take as many threads."""
    cores = shares.get()
    os.sched_setaffinity(0, cores)
    torch.set_num_threads(len(cores))
