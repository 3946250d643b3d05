"""RunResult: what `expgen.train` answers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from expgen.agents.agent import Agent
from expgen.errors import InputError
from expgen.evaluation.scores import Score, agent_name, rows_so_far
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.journal import State
from expgen.runs.shipped import load_agent
from expgen.training.metrics import MetricsFile

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, repr=False)
class RunResult:
    """What training left behind."""

    folder: RunFolder
    config: TrainConfig
    diverged: tuple[str, ...]
    is_complete: bool
    failed: tuple[str, ...] = ()  # what was given up, and why: learners whose worker process died again and again

    @property
    def state(self) -> State:
        """What has become of the run."""
        return "failed" if self.failed else "diverged" if self.diverged else "done" if self.is_complete else "stopped"

    def __repr__(self) -> str:
        last = {(agent_name(row), row.split): row.mean_return for row in self.scores}
        scores = ", ".join(f"{name} {split} {mean:.2f}" for (name, split), mean in last.items())
        what = f"{self.config.algo} on {self.config.env}, {self.state}"
        return f"RunResult({str(self.folder.path)!r}: {what}{'; ' if scores else ''}{scores})"

    @property
    def scores(self) -> list[Score]:
        """Every row of scores.csv: who played, on which split and levels, mean return with its interval, solved."""
        return list(rows_so_far(self.folder.scores_file))

    @property
    def agent(self) -> Agent:
        """What plays, from the newest checkpoints; `load_agent(result.folder.path, …)` has more choices."""
        return load_agent(self.folder.path)

    @property
    def curves(self) -> "DataFrame":
        """metrics.csv: one row per learner and update, columns as the glossary has them, NaN where nothing was said."""
        try:
            import pandas
        except ImportError:
            raise InputError("curves need pandas, which is missing: pip install pandas") from None
        rows: list[dict[str, Any]] = [
            {name: cell if name == "learner" else float(cell or "nan") for name, cell in row.items()}
            for row in MetricsFile(self.folder.metrics_file).rows()
        ]
        return pandas.DataFrame(rows).astype({"env_steps": "int64"} if rows else {})
