"""RunResult, which `expgen.train` returns; and the scores in metrics.csv as score rows without intervals."""

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from expgen.agents.agent import Agent
from expgen.agents.build import playing_settings, training_settings
from expgen.agents.temperature import AS_TRAINED
from expgen.errors import InputError
from expgen.evaluation.scores import SPLITS, Score, agent_name, rows_so_far, settings_text
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.journal import State
from expgen.runs.plan import plans_of
from expgen.runs.run_scorer import METRIC_PREFIXES
from expgen.runs.shipped import load_agent
from expgen.training.metrics import MetricsFile

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, repr=False)
class RunResult:
    """A run after training: its folder, its final state, its scores and its agent."""

    folder: RunFolder
    config: TrainConfig
    diverged: tuple[str, ...]  # names of the learners that diverged
    is_complete: bool  # every learner has trained all its steps and is scored, and nothing failed
    failed: tuple[str, ...] = ()  # learners or scores that failed, with the error

    @property
    def state(self) -> State:
        """The final state of the run."""
        return "failed" if self.failed else "diverged" if self.diverged else "done" if self.is_complete else "stopped"

    def __repr__(self) -> str:
        last = {(agent_name(row), row.split): row.mean_return for row in self.scores}
        scores = ", ".join(f"{name} {split} {mean:.2f}" for (name, split), mean in last.items())
        what = f"{self.config.algo} on {self.config.env}, {self.state}"
        return f"RunResult({str(self.folder.path)!r}: {what}{'; ' if scores else ''}{scores})"

    @property
    def scores(self) -> list[Score]:
        """The rows of scores.csv: agent, split, levels, mean return with its interval, solved rate."""
        return list(rows_so_far(self.folder.scores_file))

    @property
    def agent(self) -> Agent:
        """The agent with the newest checkpoints; `load_agent(result.folder.path, …)` has more options."""
        return load_agent(self.folder.path)

    @property
    def curves(self) -> "DataFrame":
        """metrics.csv: one row per learner and update, NaN for empty cells; the glossary explains the columns."""
        try:
            import pandas
        except ImportError:
            raise InputError("curves need pandas, which is missing: pip install pandas") from None
        rows: list[dict[str, Any]] = [
            {name: cell if name == "learner" else float(cell or "nan") for name, cell in row.items()}
            for row in MetricsFile(self.folder.metrics_file).rows()
        ]
        return pandas.DataFrame(rows).astype({"env_steps": "int64"} if rows else {})


def curve_rows(folder: RunFolder, commit: str = "") -> list[tuple[int, Score]]:
    """Return (line number in metrics.csv, score row) for each learner, scored step and split.

    commit: the code that trained the run, which metrics.csv does not record; neither does it record the temperature of
        the evaluations, which the rows leave out.
    """
    config, _ = folder.read_config()
    plans = {plan.name: plan for plan in plans_of(config)}
    rows = []
    for line, metrics in enumerate(MetricsFile(folder.metrics_file).rows(), start=2):
        plan = plans.get(metrics["learner"])
        for split, (weights, prefix) in itertools.product(SPLITS, METRIC_PREFIXES.items()):
            mean = metrics.get(f"{prefix}{split}_return")
            if plan is None or not mean:
                continue
            row = Score(
                algorithm=plan.policy.algo,
                game=config.game,
                env=config.env,
                seed=plan.policy.seed,
                split=split,
                levels=str(plan.policy.levels if split == "train" else config.test_set),
                env_steps=int(metrics["env_steps"]),
                episodes=config.eval_episodes,
                mean_return=float(mean),
                std_return=math.nan,
                solved_rate=float(metrics.get(f"{prefix}{split}_solved") or math.nan),
                ci_low=math.nan,
                ci_high=math.nan,
                agent=plan.name,
                commit=commit,
                settings=settings_text(playing_settings(weights, AS_TRAINED) | training_settings([plan.policy])),
            )
            rows.append((line, row))
    return rows
