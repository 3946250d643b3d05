"""Entries: numbered score rows with file and line."""

from pathlib import Path

import pytest

from expgen.errors import InputError
from expgen.evaluation.evaluate import Episode, summarize
from expgen.evaluation.scores import append_scores
from expgen.exploration.explore import Exploration, Mean
from expgen.exploration.rows import append_exploration, exploration_row
from expgen.report.entry import Entry, number_entries, read_entries
from expgen.report.methods import Method
from expgen.report.score_table import ScoreTable
from expgen.report.sections import build_sections
from tests.report.score_rows import make_row

EXPLORED = Exploration(
    intrinsic_return=Mean(30.0, 28.0, 32.0),
    novelty=Mean(40.0, 39.0, 41.0),
    oracle_share=Mean(0.75, 0.7, 0.8),
    oracle_success=None,
    evaluation=summarize([Episode(0, 5.0, 10, False)]),
    episodes=[],
)


def test_entries_of_several_files_are_numbered_and_keep_their_lines(tmp_path: Path) -> None:
    for name, means in (("a.csv", (1, 2)), ("b.csv", (3,))):
        append_scores(tmp_path / name, [make_row(mean=mean) for mean in means])
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    entries = number_entries([row for file in files for row in read_entries(file)], files)
    assert [(entry.row.mean_return, Path(entry.file).name, entry.line, entry.number) for entry in entries] == [
        (1, "a.csv", 2, 1),
        (2, "a.csv", 3, 2),
        (3, "b.csv", 2, 3),
    ]


def test_entry_parses_method_and_run_from_settings() -> None:
    row = make_row("expgen", seed=4, agent="expgen leader=3 min_agree=2 fallback=random")
    (entry,) = number_entries([Entry(row, "scores.csv", 2)], [])
    assert entry.method == Method("expgen", (("fallback", "random"), ("min_agree", "2")))
    assert (entry.measure, entry.run) == ("return", (4, 3))


def test_exploration_file_gives_one_entry_per_measure(tmp_path: Path) -> None:
    score = make_row("maxent", mean=5.0, agent="explorer levels=500")
    append_scores(tmp_path / "scores.csv", [score])
    append_exploration(tmp_path / "exploration.csv", [exploration_row(score, EXPLORED)])
    entries = number_entries(read_entries(tmp_path / "scores.csv"), [])
    read = [(entry.measure, entry.row.mean_return, Path(entry.file).name, entry.line) for entry in entries]
    assert read == [
        ("return", 5.0, "scores.csv", 2),
        ("intrinsic_return", 30.0, "exploration.csv", 2),
        ("novelty", 40.0, "exploration.csv", 2),
        ("oracle_share", 0.75, "exploration.csv", 2),
    ]
    assert {entry.method for entry in entries} == {Method("maxent", (("levels", "500"),))}
    append_scores(tmp_path / "other.csv", [score])
    assert len(read_entries(tmp_path / "other.csv")) == 1


def test_report_without_rows_raises_input_error() -> None:
    with pytest.raises(InputError, match=r"no scores in a\.csv"):
        number_entries([], [Path("a.csv")])


def test_empty_line_in_score_file_is_skipped_but_counted(tmp_path: Path) -> None:
    append_scores(tmp_path / "a.csv", [make_row()])
    header, row, _ = (tmp_path / "a.csv").read_text().split("\n")
    (tmp_path / "a.csv").write_text(f"{header}\n\n{row}\n")
    assert [read.line for read in read_entries(tmp_path / "a.csv")] == [3]


@pytest.mark.parametrize(
    "word", ["leader=²", "members=²", "ensemble_size=abc", "min_agree=x", "ensemble_size=0", "min_agree=" + "9" * 5000]
)
def test_non_numeric_counts_in_settings_are_ignored(word: str) -> None:
    row = make_row("expgen", agent=f"expgen {word}")
    (entry,) = number_entries([Entry(row, "scores.csv", 2)], [])
    assert (entry.run, entry.members) == ((0, 0), 0) and not entry.method.count(word.partition("=")[0])
    names = {section.name for section in build_sections(ScoreTable([entry], resamples=20))}
    assert "everything" in names and not names & {"table-4", "table-5"}
