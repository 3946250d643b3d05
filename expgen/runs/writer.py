"""RunWriter: writes the files of a run while it trains, except checkpoints.

Weights that wait for the scoring worker are files, so that no due score is lost if the run is killed. A learner writes
the weights before the row of their step, the row is written before the next checkpoint, and the file is deleted once
the row has its scores. So a file found on resume is due, unless it is newer than the learner's checkpoint.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

from expgen.agents.description import AgentDescription
from expgen.envs.vec_env import EnvSpec
from expgen.files import write_atomic
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


def checkpoint_steps(folder: RunFolder, learner: str) -> int:
    """Return the steps of the newest valid checkpoint of `learner`; 0 without one."""
    checkpoint = latest_checkpoint(folder.checkpoints_of(learner), is_quiet=True)
    return int(checkpoint.facts["env_steps"]) if checkpoint else 0


def files_to_score(folder: RunFolder, learner: str) -> list[tuple[int, Path]]:
    """Return steps and file of each weights file of `learner` that waits to be scored, oldest first."""
    files = sorted(folder.weights_to_score_of(learner).glob("*.safetensors"))
    return [(int(file.stem), file) for file in files if file.stem.isdigit()]


class RunWriter:
    """Writes config, metrics and scores of a run that this process owns, and calls its callbacks."""

    def __init__(self, run: OpenedRun, lock: RunLock, on_row: OnRow, prefix: str = "") -> None:
        """`on_row` is called with `prefix` plus the learner's name, and with each row plus the learner's `envs`."""
        self.run, self.folder, self.lock, self.on_row, self.prefix = run, run.folder, lock, on_row, prefix
        self.plans = {plan.name: plan for plan in run.plans}
        self.env_steps = dict.fromkeys(self.plans, 0)
        repair_metrics(self.folder.metrics_file)
        self.metrics, self.callbacks = MetricsFile(self.folder.metrics_file), run.callbacks

    def start(self, spec: EnvSpec) -> AgentDescription:
        """Write config.json and agent.json; return the agent that the run trains. `spec` is the environment's."""
        agent = describe_run(self.folder.path, self.run.config, spec, self.run.consensus)
        playing = dict(self.run.playing)
        if not self.run.config.average:
            playing.pop("weights", None)
        if self.folder.exists():  # a resumed run keeps the settings of agent.json that training does not decide
            before = read_agent(self.folder.path)
            kept = ("weights", "temperature", "explorer_temperature")
            agent = replace(agent, **{name: getattr(before, name) for name in kept} | playing)
            decides = attrgetter("consensus", "temperature", "explorer_temperature")
            playing["tuned"] = before.tuned if decides(before) == decides(agent) else ()
            if before.consensus != agent.consensus:
                write_atomic(self.folder.new_vote_file, b"", new_folders=1)  # before agent.json, which is what changes
        agent = replace(agent, **playing)
        write_agent(agent)  # first, since a run without agent.json would be resumed with the default agent
        self.folder.write_config(self.run.config, spec)
        self.callbacks.on_start(self.folder.path, flatten(self.run.config))
        return agent

    def rewind(self, learner: str, env_steps: int) -> None:
        """Drop what `learner` reported after the checkpoint of `env_steps` that it resumes from."""
        self.env_steps[learner] = env_steps
        self.metrics.drop_rows_after(learner, env_steps)
        self.callbacks.on_learner(learner, env_steps)
        for steps, file in files_to_score(self.folder, learner):
            if steps > env_steps:
                file.unlink(missing_ok=True)

    def write_row(self, learner: str, row: dict[str, float]) -> ScoreRequest | None:
        """Append a row to metrics.csv; return a score request if the learner has saved weights for that step."""
        self.lock.check()
        self.metrics.append(learner, row)
        self.callbacks.on_update(learner, row)
        env_steps = self.env_steps[learner] = int(row["env_steps"])
        self.on_row(self.prefix + learner, {**row, "envs": self.plans[learner].envs})
        weights = checkpoint_file(self.folder.weights_to_score_of(learner), env_steps)
        return ScoreRequest(self.folder.path, learner, env_steps, weights) if weights.exists() else None

    def write_scores(self, request: ScoreRequest, scores: dict[str, float]) -> None:
        """Add the scores to the row of their step, call `on_row` with them, then delete the weights file."""
        self.lock.check()
        if request.learner is None:
            self.folder.new_vote_file.unlink(missing_ok=True)
        if request.learner is None or request.weights is None:  # not a score of the schedule, in metrics.csv
            return
        if self.metrics.complete_row(request.learner, request.env_steps, scores):
            self.callbacks.on_score(request.learner, request.env_steps, scores)
            self.on_row(self.prefix + request.learner, {"env_steps": self.env_steps[request.learner], **scores})
        request.weights.unlink(missing_ok=True)

    def report_checkpoint(self, learner: str, env_steps: int) -> None:
        """Tell the callbacks that a checkpoint of `learner` was written."""
        file = checkpoint_file(self.folder.checkpoints_of(learner), env_steps)
        self.callbacks.on_checkpoint(learner, env_steps, file)

    def pending_scores(self) -> Iterator[ScoreRequest]:
        """Yield requests for the weights that earlier sessions saved but did not score, and for trained learners.

        The rows of a trained learner are missing if this resume changed how it plays, for example its temperature.
        """
        for name, plan in self.plans.items():
            files = files_to_score(self.folder, name)
            for env_steps, weights in files:
                yield ScoreRequest(self.folder.path, name, env_steps, weights)
            done = self.env_steps[name]
            if self.run.config.eval_every and done >= plan.steps and done not in dict(files):
                yield ScoreRequest(self.folder.path, name, done, None)

    @property
    def has_new_vote(self) -> bool:
        """Whether this or an interrupted session changed how the ensemble votes, which score rows do not show."""
        return self.folder.new_vote_file.exists()

    @property
    def is_complete(self) -> bool:
        """Whether every learner has reached the end of its schedule."""
        return all(self.env_steps[name] >= plan.steps for name, plan in self.plans.items())

    def finish(self, diverged: tuple[str, ...], failed: tuple[str, ...], is_scored: bool = True) -> RunResult:
        """Write the final state of the run to its journal, once no worker writes to the run any more.

        `diverged` are names of learners, `failed` one line per error; `is_scored`: no score is pending.
        """
        is_complete = self.is_complete and not failed and is_scored
        result = RunResult(self.folder, self.run.config, diverged, is_complete, failed)
        self.callbacks.on_end(result.state)
        self.folder.delete_partial_files()  # of workers that were killed
        scoring = self.folder.path / "scoring" / "checkpoints"
        for folder in (*scoring.glob("*"), scoring, scoring.parent):
            with contextlib.suppress(OSError):  # not empty: scores are pending
                folder.rmdir()
        self.lock.save(result.state, "; ".join(failed) or ", ".join(diverged))
        return result
