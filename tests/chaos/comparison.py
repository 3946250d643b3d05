"""Compare the rows and weights of a reproduction with faults to one without."""

from pathlib import Path
from typing import Any

from expgen.runs.folder import RunFolder
from tests.chaos.scene import JOBS
from tests.policies import newest_checkpoint


def compare(local: Path, out: Path) -> dict[str, Any]:
    tensors = tensors_in(local)
    rows = [(place / "scores.csv").read_text().splitlines()[1:] for place in (local, out)]
    return {
        "score_rows": len(rows[0]),
        "rows_lost_or_changed": len(set(rows[0]) - set(rows[1])),
        "rows_added": len(set(rows[1]) - set(rows[0])),
        "rows_doubled": len(rows[1]) - len(set(rows[1])),
        "same_order": rows[0] == rows[1],
        "final_checkpoints_bit_equal": bool(tensors) and tensors == tensors_in(out),
        "half_written_files": len(list(out.rglob("*.part"))),
    }


def tensors_in(out: Path) -> dict[str, bytes]:
    found = {}
    for name in JOBS:
        folder = RunFolder(out / "runs" / name)
        for learner in folder.learners():
            tensors = newest_checkpoint(folder, learner).tensors
            found |= {f"{name} {learner} {key}": tensor.numpy().tobytes() for key, tensor in tensors.items()}
    return found


def is_good(report: dict[str, Any]) -> bool:
    faults = ("rows_lost_or_changed", "rows_added", "rows_doubled", "processes_left", "half_written_files")
    return report["final_checkpoints_bit_equal"] and not any(report[fault] for fault in faults)
