"""What the scoring worker does: play policies as their weights are written, while the learners train on."""

from collections.abc import Generator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from expgen.agents.build import checkpoint_of, policies_from
from expgen.runs.adopt import plans_in
from expgen.runs.agent_files import read_agent
from expgen.runs.folder import RunFolder
from expgen.runs.messages import Scored, ScoreRequest
from expgen.runs.scoring import RunScorer
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
        config, _ = folder.read_config()
        self.agent = read_agent(folder.path)
        self.plans = {plan.name: plan for plan in plans_in(folder, config)}
        self.device = str(resources.device)
        self.scorer = RunScorer(self.agent, config, folder, resources, Sitting(folder, mark).check)

    def play(self, request: ScoreRequest) -> Generator[None, None, Scores]:
        """Play one policy, giving way as it goes; the whole ensemble at once, for that is a run's last score."""
        if request.learner is None or request.weights is None:
            averaged = [name for name in self.plans if has_average(checkpoint_of(self.agent, name))]
            self.scorer.score_ensemble(averaged)
            return {}
        plan = self.plans[request.learner]
        policies = policies_from(request.weights, self.agent.policies[plan.name], self.agent.spec, self.device)
        return (yield from self.scorer.score(plan, request.env_steps, policies))
