"""What the scoring worker does: play policies as their weights are written, while the learners train on."""

from collections.abc import Generator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from expgen.runs.adopt import plans_in
from expgen.runs.folder import RunFolder
from expgen.runs.load import policies_from
from expgen.runs.messages import Scored, ScoreRequest
from expgen.runs.scoring import Scorer
from expgen.runs.sitting import Sitting
from expgen.training.average import has_average
from expgen.training.life import Scores
from expgen.training.resources import Resources, allotted, plan_resources

AT_ONCE = 4  # policies that play side by side: while one's games step, another chooses its actions


def score_requested(marks: Mapping[Path, str], device: str, cores: int, parent: Connection) -> None:
    """Answer each `ScoreRequest`, in the order in which they end; `marks` are those of the runs' sittings."""
    with allotted(cores):
        resources = plan_resources(device, AT_ONCE)
        torch.set_num_threads(resources.torch_threads)
        rooms = {run: _Room(RunFolder(run), mark, resources) for run, mark in marks.items()}
        playing: dict[ScoreRequest, Generator[None, None, Scores]] = {}
        while True:
            while len(playing) < AT_ONCE and (not playing or parent.poll()):
                request: ScoreRequest = parent.recv()
                playing[request] = rooms[request.run].play(request)
            for request, work in list(playing.items()):
                try:
                    next(work)
                except StopIteration as finished:
                    del playing[request]
                    parent.send(Scored(request, finished.value))


class _Room:
    """Where the policies of one run are played."""

    def __init__(self, folder: RunFolder, mark: str, resources: Resources) -> None:
        self.folder = folder
        self.config, self.spec = folder.read_config()
        self.plans = {plan.name: plan for plan in plans_in(folder, self.config)}
        self.device = str(resources.device)
        self.scorer = Scorer(self.config, folder, resources, Sitting(folder, mark).check)

    def play(self, request: ScoreRequest) -> Generator[None, None, Scores]:
        """Play one policy, giving way as it goes; the whole ensemble at once, for that is a run's last score."""
        if request.learner is None or request.weights is None:
            averaged = [name for name in self.plans if has_average(self.folder.checkpoint(name))]
            self.scorer.score_consensus(averaged)
            return {}
        plan = self.plans[request.learner]
        policies = policies_from(request.weights, plan, self.spec, self.device)
        return (yield from self.scorer.score_all(plan, request.env_steps, policies))
