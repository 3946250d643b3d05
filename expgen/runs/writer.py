"""RunWriter: the one process that writes a run's rows and events while its learners train in others."""

from collections.abc import Iterator, Mapping, Sequence

from expgen.agents.consensus import ConsensusConfig
from expgen.envs.vec_env import EnvSpec
from expgen.runs.agent_files import agent_of_run, write_agent
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.messages import ScoreRequest
from expgen.runs.milestones import open_milestones
from expgen.runs.plan import LearnerPlan
from expgen.runs.scoring import is_wanting
from expgen.runs.sitting import Sitting
from expgen.runs.to_score import drop_after, files_to_score, remove_empty, stored_steps
from expgen.training.checkpoint import checkpoint_file, has_checkpoint_from
from expgen.training.life import Milestone, Report
from expgen.training.metrics import MetricsFile, TensorBoardEvents


class RunWriter:
    """Of a run that has been taken over: its config, rows, events, and which scores are still to come."""

    def __init__(
        self,
        folder: RunFolder,
        config: TrainConfig,
        plans: Sequence[LearnerPlan],
        consensus: ConsensusConfig | None,
        seat: Sitting,
        on_row: Report,
        prefix: str = "",
    ) -> None:
        """`consensus` says how its agent votes; `on_row` hears of rows, under the learner's name after `prefix`."""
        self.folder, self.config, self.consensus, self.seat = folder, config, consensus, seat
        self.on_row, self.prefix = on_row, prefix
        self.plans = {plan.name: plan for plan in plans}
        self.env_steps = {plan.name: stored_steps(folder, plan.name) for plan in plans}
        self.metrics, self.events = MetricsFile(folder.metrics_file), TensorBoardEvents(folder.events_folder)
        self.milestones: Mapping[str, list[Milestone]] = {}

    def open(self, spec: EnvSpec) -> None:
        """Write what the run is; `spec` is its environment's."""
        agent = agent_of_run(self.folder, self.config, spec, list(self.plans.values()), self.consensus)
        self.milestones = open_milestones(self.folder, self.config, agent, self.env_steps)
        self.folder.write_config(self.config, spec)
        write_agent(agent)

    def begin(self, learner: str) -> list[Milestone]:
        """`learner` is about to go on from its newest checkpoint: forget what it reported past it.

        Returns the milestones at which it is still to be kept.
        """
        env_steps = self.env_steps[learner] = stored_steps(self.folder, learner)
        self.metrics.forget_after(learner, env_steps)
        self.events.start(learner, env_steps)
        drop_after(self.folder, learner, env_steps)
        return [kept for kept in self.milestones[learner] if not has_checkpoint_from(kept.folder, kept.env_steps)]

    def row(self, learner: str, row: dict[str, float]) -> ScoreRequest | None:
        """Write one row; what is to be played where the learner has left weights to score."""
        self.seat.check()
        self.metrics.append(learner, row)
        self.events.append(learner, row)
        env_steps = self.env_steps[learner] = int(row["env_steps"])
        self.on_row(self.prefix + learner, row)
        weights = checkpoint_file(self.folder.to_score(learner), env_steps)
        return ScoreRequest(self.folder.path, learner, env_steps, weights) if weights.exists() else None

    def scored(self, request: ScoreRequest, scores: dict[str, float]) -> None:
        """Complete the row of that step, then forget the weights.

        Who watches hears the scores with the steps that the learner has come to by now.
        """
        if request.learner is None or request.weights is None:
            return
        self.seat.check()
        if self.metrics.complete(request.learner, request.env_steps, scores):
            self.events.append(request.learner, {"env_steps": request.env_steps, **scores})
            now = {"env_steps": self.env_steps[request.learner], **scores}
            self.on_row(self.prefix + request.learner, now)
        if request.weights.parent == self.folder.to_score(request.learner):
            request.weights.unlink(missing_ok=True)

    def left_to_score(self) -> Iterator[ScoreRequest]:
        """What earlier processes have left, with rows that have no scores yet."""
        for name in self.plans:
            for env_steps, weights in files_to_score(self.folder, name):
                yield ScoreRequest(self.folder.path, name, env_steps, weights)

    def wanting(self) -> Iterator[ScoreRequest]:
        """Learners that are complete without rows in scores.csv, as those that joined complete are."""
        for name, plan in self.plans.items():
            if is_wanting(self.folder, self.config, plan, self.env_steps[name]):
                weights = checkpoint_file(self.folder.checkpoints_of(name), self.env_steps[name])
                yield ScoreRequest(self.folder.path, name, self.env_steps[name], weights)

    @property
    def is_complete(self) -> bool:
        """Whether every learner has come to the end of its schedule."""
        return all(self.env_steps[name] >= plan.steps for name, plan in self.plans.items())

    def close(self) -> None:
        """No more rows will come."""
        self.events.close()
        remove_empty(self.folder)
