"""The table of scores of a finished run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from expgen.cli.summary import outcome
from expgen.evaluation.scores import agent_name, append_scores, read_scores
from expgen.runs.folder import RunFolder


def test_outcome_has_a_line_per_agent_and_the_explorer_s_coverage(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1, algo="expgen", members=2, eval_every=10**9, **small.explorer)
    header, *lines, covered = outcome(RunFolder(tmp_path))
    assert header.startswith("agent") and covered.startswith("explorer covers ") and covered.endswith("on unseen ones")
    agents = ["member0", "member1", "explorer", "expgen members=2", "expgen fallback=random members=2"]
    assert sorted(line.split("  ")[0] for line in lines) == sorted(agents)
    assert len({line.index(" (") for line in lines}) == 1  # aligned columns
    for row in read_scores(tmp_path / "scores.csv"):
        line = next(line for line in lines if line.startswith(f"{agent_name(row)}  "))
        assert f"{row.mean_return:.2f} ({row.ci_low:.2f} to {row.ci_high:.2f})" in line


def test_outcome_of_a_grown_ensemble_has_one_line(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1, algo="expgen", members=2, eval_every=10**9, **small.explorer)
    rows = [row for row in read_scores(tmp_path / "scores.csv") if row.settings == "members=2"]
    append_scores(tmp_path / "scores.csv", [replace(row, agent="expgen", settings="members=3") for row in rows])
    lines = [line for line in outcome(RunFolder(tmp_path)) if line.startswith("expgen members")]
    assert len(lines) == 1 and lines[0].startswith("expgen members=3 ")


def test_outcome_without_scores_is_empty(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1)
    assert list(outcome(RunFolder(tmp_path))) == []
