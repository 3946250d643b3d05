"""Scores that do not hang on one checkpoint: the last one, and the mean over the last five that were scored."""

from collections.abc import Sequence

import numpy as np
from numpy import ndarray

from expgen.report.curves import SCORED, Curve
from expgen.report.lines import short_steps
from expgen.report.methods import Method
from expgen.report.section import Section
from expgen.report.tables import Table, TableCell, interval_cell, number_cell

LAST = 5  # scored checkpoints
LATE = 0.75  # of the steps: those before are not of the end of training
COLUMNS = ("game", "method", "split", "weights", "learners", "last checkpoint", "mean of the last five",
           "lowest to highest of these", "their steps")  # fmt: skip
NOTE = (
    "Both are mean returns of evaluations, each of one checkpoint, and means over learners: `last checkpoint` is the "
    "paper's way, `mean of the last five` that over the last five scored ones. The range is over all learners' five. "
    "Learners whose last five do not all lie in the last quarter of their steps are left out. Returns of training "
    "episodes are in neither."
)


def checkpoint_section(curves: Sequence[Curve]) -> Section | None:
    """A row for each game, method, split and kind of weights that learners with five scored checkpoints have."""
    last: dict[tuple[str, Method, str], list[ndarray]] = {}
    for curve in curves:
        for column, points in curve.scored.items():
            if len(points) >= LAST and points[-LAST, 0] >= LATE * points[-1, 0]:
                last.setdefault((curve.game, Method(curve.method), column), []).append(points[-LAST:])
    result = Table("checkpoints", "The last checkpoint and the mean over the last five scored ones.", COLUMNS)
    for game, method, column in sorted(last, key=lambda key: (key[0], key[1].rank, SCORED.index(key[2]))):
        points = np.stack(last[game, method, column])  # [learners, LAST, 2]
        score, steps = points[..., 1], points[..., 0]
        result.add(
            game,
            method.label,
            "train" if "train" in column else "test",
            "average" if column.startswith("average") else "live",
            number_cell(len(points), 0),
            number_cell(float(score[:, -1].mean())),
            number_cell(float(score.mean())),
            interval_cell(float(score.min()), float(score.max())),
            TableCell(f"{short_steps(steps.min())} to {short_steps(steps.max())}", float(steps.max())),
        )
    return Section("checkpoints", NOTE, (result,), heading="One checkpoint and the last five") if result.rows else None
