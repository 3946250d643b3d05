"""tune.csv: what `expgen tune` tried in a run and what it picked, which the run's agent is then played with."""

import csv
import io
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from expgen.agents.decision import Counts
from expgen.errors import InputError
from expgen.evaluation.evaluate import Evaluation
from expgen.files import read_bytes, write_whole
from expgen.provenance import commit
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.training.average import Weights

COLUMNS = (
    *("min_agree", "members", "alpha", "episodes", "mean_return", "solved_rate", "ci_low", "ci_high"),
    *("explored_share", "weights", "picked", "commit"),
)


class Trial(NamedTuple):
    """One point of the grid and what came of it."""

    min_agree: int  # of the whole ensemble
    alpha: float
    evaluation: Evaluation
    counts: Counts


def write_tuned(
    folder: RunFolder, members: int, trials: Sequence[Trial], picked: Trial, weights: Weights = "live"
) -> None:
    """The grid, one row a point, as it was played with `weights`; `picked` is 1 in one of them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for trial in trials:
        score = trial.evaluation
        numbers = (score.mean_return, score.solved_rate, score.ci_low, score.ci_high, trial.counts.explored_share)
        shown = (f"{number:.6g}" for number in numbers)
        where = (trial.min_agree, members, trial.alpha, len(score.episodes))
        writer.writerow([*where, *shown, weights, int(trial is picked), commit()])
    write_whole(folder.tune_file, text.getvalue().encode())


def read_tuned(folder: RunFolder, config: TrainConfig) -> dict[str, Any]:
    """The settings picked for this run's ensemble; none where it was not tuned, or was of another size."""
    if not folder.tune_file.exists():
        return {}
    try:
        rows = csv.DictReader(read_bytes(folder.tune_file).decode().splitlines())
        row = next(row for row in rows if row["picked"] == "1")
        members, settings = int(row["members"]), {"min_agree": int(row["min_agree"]), "alpha": float(row["alpha"])}
    except (OSError, StopIteration, KeyError, TypeError, ValueError):
        raise InputError(f"{folder.tune_file} is damaged; accepted: a file that expgen tune wrote") from None
    if members != config.members:
        print(f"expgen: {folder.tune_file} is of {members} members and is passed over; tune again", file=sys.stderr)
        return {}
    return settings
