"""Rows of a run's metrics.csv, as tests compare them."""

import csv
from pathlib import Path

MINUTE = 60  # seconds, the most that a process of a test may take


def metrics(run: Path) -> list[dict[str, str]]:
    """The rows of metrics.csv without what depends on the clock; whole lines only, for a run may be under way."""
    if not (run / "metrics.csv").exists():
        return []
    lines = [line for line in (run / "metrics.csv").read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [{name: row[name] for name in row if name != "seconds"} for row in csv.DictReader(lines)]


def by_learner(run: Path) -> list[dict[str, str]]:
    return sorted(metrics(run), key=lambda row: (row["learner"], int(row["env_steps"])))
