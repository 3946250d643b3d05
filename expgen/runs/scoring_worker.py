"""The scoring worker: plays policies as their weights are written, while the learners continue to train."""

import traceback
from collections.abc import Generator, Mapping
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from expgen.errors import StorageError, TakenOver, line_of
from expgen.runs.agent_files import read_agent
from expgen.runs.folder import RunFolder
from expgen.runs.hang_limit import HangLimit, OnHang
from expgen.runs.messages import Scored, ScoreRequest
from expgen.runs.run_lock import check_owner
from expgen.runs.scoring import RunScorer
from expgen.training.life import Scores
from expgen.training.resources import allotted, plan_resources

AT_ONCE = 4  # policies that play side by side: while one's games step, another chooses its actions


def score_requested(
    owners: Mapping[Path, str], device: str, cores: int, hang_seconds: float, parent: Connection
) -> None:
    """Answer each `ScoreRequest` of `parent` as it ends.

    owners: the `RunLock.owner` of each run folder, without which nothing is written to it.
    cores: this worker's share of the machine.
    hang_seconds: limit of HangLimit; 0 for none.
    """
    with allotted(cores):
        resources = plan_resources(device, AT_ONCE)
        torch.set_num_threads(resources.torch_threads)
        scorers = {}
        for run, owner in owners.items():
            folder = RunFolder(run)
            is_ours = partial(check_owner, folder, owner)
            scorers[run] = RunScorer(read_agent(run), folder.read_config()[0], folder, resources, is_ours)
        playing: dict[ScoreRequest, Generator[None, None, Scores]] = {}
        limit = HangLimit(hang_seconds)
        while True:
            while len(playing) < AT_ONCE and (not playing or parent.poll()):
                request: ScoreRequest = parent.recv()
                playing[request] = limit.on(scorers[request.run].answer(request), _failing(request, parent))
            for request, work in list(playing.items()):
                try:
                    next(work)
                except StopIteration as finished:
                    del playing[request]
                    parent.send(Scored(request, finished.value))
                except (StorageError, TakenOver):
                    raise
                except (Exception, SystemExit) as error:  # whatever a game raises costs its own score alone
                    del playing[request]
                    _failing(request, parent)(line_of(error), traceback.format_exc())


def _failing(request: ScoreRequest, parent: Connection) -> OnHang:
    """Tells `parent` that `request` failed."""
    return lambda error, trace: parent.send(Scored(request, {}, error, trace))
