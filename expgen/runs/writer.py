"""RunWriter: all that is written of a run while it trains, checkpoints apart, in this process or by workers.

Weights that wait to be scored beside training are files, so that a kill loses no score that is due. A learner writes
them before the row of that step, the row is written before any checkpoint that follows, and the file goes when the row
has its scores. So what lies there after a kill is due, unless it is past the learner's checkpoint.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from expgen.agents.description import AgentDescription
from expgen.envs.vec_env import EnvSpec
from expgen.runs.agent_files import describe_run, read_agent, write_agent
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import OpenedRun
from expgen.runs.messages import ScoreRequest
from expgen.runs.result import RunResult
from expgen.runs.run_lock import RunLock
from expgen.settings import flatten
from expgen.training.checkpoint import checkpoint_file, latest_checkpoint
from expgen.training.loop import OnRow
from expgen.training.metrics import MetricsFile, repair_metrics


def stored_steps(folder: RunFolder, learner: str) -> int:
    """Steps of the newest good checkpoint, from which `learner` goes on."""
    checkpoint = latest_checkpoint(folder.checkpoints_of(learner), is_quiet=True)
    return int(checkpoint.facts["env_steps"]) if checkpoint else 0


def files_to_score(folder: RunFolder, learner: str) -> list[tuple[int, Path]]:
    """Steps and files of the weights of `learner` that wait to be scored, in that order."""
    files = sorted(folder.to_score(learner).glob("*.safetensors"))
    return [(int(file.stem), file) for file in files if file.stem.isdigit()]


class RunWriter:
    """Writes the config, rows and events of a run that this process owns; knows which scores are still to come."""

    def __init__(self, run: OpenedRun, lock: RunLock, on_row: OnRow, prefix: str = "") -> None:
        """`on_row` gets every row, under the learner's name after `prefix`."""
        self.run, self.folder, self.lock, self.on_row, self.prefix = run, run.folder, lock, on_row, prefix
        self.plans = {plan.name: plan for plan in run.plans}
        self.env_steps = dict.fromkeys(self.plans, 0)
        repair_metrics(self.folder.metrics_file)
        self.metrics, self.callbacks = MetricsFile(self.folder.metrics_file), run.callbacks

    def open(self, spec: EnvSpec) -> AgentDescription:
        """Write config.json and agent.json; `spec` is the environment's. Returns the agent that the run makes."""
        agent = describe_run(self.folder.path, self.run.config, spec, self.run.consensus)
        if self.folder.exists():  # training has no say in the rest of its agent
            before = read_agent(self.folder.path)
            tuned = before.tuned if before.consensus == agent.consensus else ()
            agent = replace(agent, weights=before.weights, tuned=tuned)
        self.folder.write_config(self.run.config, spec)
        write_agent(agent)
        self.callbacks.on_start(self.folder.path, flatten(self.run.config))
        return agent

    def begin(self, learner: str, env_steps: int) -> None:
        """`learner` is about to continue from its checkpoint of `env_steps`: drop what it reported after it."""
        self.env_steps[learner] = env_steps
        self.metrics.drop_rows_after(learner, env_steps)
        self.callbacks.on_learner(learner, env_steps)
        for steps, file in files_to_score(self.folder, learner):
            if steps > env_steps:
                file.unlink(missing_ok=True)

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
        if self.metrics.complete_row(request.learner, request.env_steps, scores):
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

    def conclude(self, diverged: tuple[str, ...], failed: tuple[str, ...], is_scored: bool = True) -> RunResult:
        """Write how the run has ended: no more rows will come, and no worker is left that writes.

        `diverged` are learners; `failed` says what was given up and why; with `is_scored` no score is left to be made.
        """
        is_complete = self.is_complete and not failed and is_scored
        result = RunResult(self.folder, self.run.config, diverged, is_complete, failed)
        self.callbacks.on_end(result.state)
        self.folder.sweep()  # files of workers that were killed
        waited = self.folder.path / "scoring" / "checkpoints"
        for place in (*waited.glob("*"), waited, waited.parent):
            with contextlib.suppress(OSError):  # something still waits there
                place.rmdir()
        self.lock.save(result.state, "; ".join(failed) or ", ".join(diverged))
        return result
