"""RunWriter: all that is written of a run while it trains, checkpoints apart, in this process or by workers."""

from collections.abc import Iterator, Sequence

from expgen.agents.consensus import ConsensusConfig
from expgen.agents.description import AgentDescription
from expgen.envs.vec_env import EnvSpec
from expgen.runs.agent_files import agent_of_run, write_agent
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.journal import State
from expgen.runs.messages import ScoreRequest
from expgen.runs.plan import LearnerPlan
from expgen.runs.run_lock import RunLock
from expgen.runs.to_score import drop_after, files_to_score, remove_empty
from expgen.settings import flat
from expgen.training.callbacks import Callbacks
from expgen.training.checkpoint import checkpoint_file
from expgen.training.life import Report
from expgen.training.metrics import MetricsFile
from expgen.training.repair_metrics import repair_metrics


class RunWriter:
    """Writes the config, rows and events of a run that this process owns; knows which scores are still to come."""

    def __init__(
        self,
        folder: RunFolder,
        config: TrainConfig,
        plans: Sequence[LearnerPlan],
        consensus: ConsensusConfig | None,
        lock: RunLock,
        callbacks: Callbacks,
        on_row: Report,
        prefix: str = "",
    ) -> None:
        """`consensus` says how the agent votes; `callbacks` hear of all that happens.

        `on_row` gets every row, under the learner's name after `prefix`.
        """
        self.folder, self.config, self.consensus, self.lock = folder, config, consensus, lock
        self.on_row, self.prefix = on_row, prefix
        self.plans = {plan.name: plan for plan in plans}
        self.env_steps = dict.fromkeys(self.plans, 0)
        repair_metrics(folder.metrics_file)
        self.metrics, self.callbacks = MetricsFile(folder.metrics_file), callbacks

    def open(self, spec: EnvSpec) -> AgentDescription:
        """Write config.json and agent.json; `spec` is the environment's. Returns the agent that the run makes."""
        agent = agent_of_run(self.folder, self.config, spec, list(self.plans.values()), self.consensus)
        self.folder.write_config(self.config, spec)
        write_agent(agent)
        self.callbacks.on_start(self.folder.path, flat(self.config))
        return agent

    def begin(self, learner: str, env_steps: int) -> None:
        """`learner` is about to continue from its checkpoint of `env_steps`: drop what it reported after it."""
        self.env_steps[learner] = env_steps
        self.metrics.forget_after(learner, env_steps)
        self.callbacks.on_learner(learner, env_steps)
        drop_after(self.folder, learner, env_steps)

    def row(self, learner: str, row: dict[str, float]) -> ScoreRequest | None:
        """Write one row; returns what is to be scored if the learner has saved weights for that."""
        self.lock.check()
        self.metrics.append(learner, row)
        self.callbacks.on_update(learner, row)
        env_steps = self.env_steps[learner] = int(row["env_steps"])
        self.on_row(self.prefix + learner, row)
        weights = checkpoint_file(self.folder.to_score(learner), env_steps)
        return ScoreRequest(self.folder.path, learner, env_steps, weights) if weights.exists() else None

    def scored(self, request: ScoreRequest, scores: dict[str, float]) -> None:
        """Add the scores to the row of their step, then delete the weights.

        `on_row` gets them with the learner's present number of steps.
        """
        if request.learner is None or request.weights is None:
            return
        self.lock.check()
        if self.metrics.complete(request.learner, request.env_steps, scores):
            self.callbacks.on_score(request.learner, request.env_steps, scores)
            now = {"env_steps": self.env_steps[request.learner], **scores}
            self.on_row(self.prefix + request.learner, now)
        request.weights.unlink(missing_ok=True)

    def saved(self, learner: str, env_steps: int) -> None:
        """A checkpoint of `learner` has been written."""
        file = checkpoint_file(self.folder.checkpoints_of(learner), env_steps)
        self.callbacks.on_checkpoint(learner, env_steps, file)

    def left_to_score(self) -> Iterator[ScoreRequest]:
        """Weights that earlier processes saved and did not score."""
        for name in self.plans:
            for env_steps, weights in files_to_score(self.folder, name):
                yield ScoreRequest(self.folder.path, name, env_steps, weights)

    @property
    def is_complete(self) -> bool:
        """Whether every learner has reached the end of its schedule."""
        return all(self.env_steps[name] >= plan.steps for name, plan in self.plans.items())

    def close(self, state: State) -> None:
        """No more rows will come, and no worker is left that writes: the run is in `state`."""
        self.callbacks.on_end(state)
        self.folder.sweep()  # files of workers that were killed
        remove_empty(self.folder)
