"""Read metrics.csv for comparisons in tests."""

import csv
from pathlib import Path


def metrics(run: Path) -> list[dict[str, str]]:
    """Return the rows of metrics.csv without the column `seconds`; only complete lines, since the run may be active."""
    if not (run / "metrics.csv").exists():
        return []
    lines = [line for line in (run / "metrics.csv").read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [{name: row[name] for name in row if name != "seconds"} for row in csv.DictReader(lines)]


def by_learner(run: Path) -> list[dict[str, str]]:
    return sorted(metrics(run), key=lambda row: (row["learner"], int(row["env_steps"])))
