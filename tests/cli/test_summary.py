"""The table of scores of a finished run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from expgen.cli.summary import outcome
from expgen.evaluation.scores import agent_name, append_scores, read_scores
from expgen.runs.current_scores import current_scores
from expgen.runs.folder import RunFolder


def table(run: Path) -> list[str]:
    return list(outcome(current_scores(RunFolder(run))))


def test_outcome_has_a_line_per_agent_and_the_explorer_s_coverage(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1, algo="expgen", members=2, eval_every=10**9, **small.explorer)
    header, *lines, covered = table(tmp_path)
    assert header.startswith("agent") and header.endswith("solved  episodes")
    assert covered.startswith("explorer covers ") and covered.endswith("on unseen ones")
    agents = ["member0", "member1", "explorer", "expgen members=2", "expgen fallback=random members=2"]
    assert sorted(line.split("  ")[0] for line in lines) == sorted(agents)
    assert len({line.index(" (") for line in lines}) == 1  # aligned columns
    for row in read_scores(tmp_path / "scores.csv"):
        line = next(line for line in lines if line.startswith(f"{agent_name(row)}  "))
        assert f"{row.mean_return:.2f} ({row.ci_low:.2f} to {row.ci_high:.2f})" in line and line.endswith(" 4")


def test_outcome_names_both_numbers_of_episodes_if_they_differ(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1, eval_every=10**9)
    (test,) = (row for row in read_scores(tmp_path / "scores.csv") if row.split == "test")
    append_scores(tmp_path / "scores.csv", [replace(test, episodes=500, mean_return=9.87)])
    _, line = table(tmp_path)
    assert line.endswith("  4 and 500") and "  9.87 (" in line


def test_outcome_without_scores_is_empty(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1)
    assert table(tmp_path) == []
