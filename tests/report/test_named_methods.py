"""methods.csv: variants with settings that differ by game as one method of the report."""

from pathlib import Path

import pytest

from expgen.errors import InputError
from expgen.evaluation.scores import append_scores
from expgen.report.entry import number_entries, read_entries
from expgen.report.methods import Method
from expgen.report.score_table import ScoreTable
from tests.report.score_rows import make_row

HEADER = "method,game,algorithm,settings\n"
LINES = "best agent,maze,ppo,mirror=True width=2\nbest agent,heist,idaac,\n"


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    rows = [
        make_row("ppo", "maze", mean=5, agent="member0 width=2 mirror=True members=3"),
        make_row("ppo", "maze", mean=4),
        make_row("idaac", "heist", mean=6),
        make_row("idaac", "maze", mean=7),
    ]
    append_scores(tmp_path / "scores.csv", rows)
    return tmp_path / "scores.csv"


def table_of(scores: Path) -> ScoreTable:
    return ScoreTable(number_entries(read_entries(scores), [scores]))


def test_named_variants_form_one_method_and_keep_their_own(scores: Path) -> None:
    scores.with_name("methods.csv").write_text(HEADER + LINES)
    table, named = table_of(scores), Method("best agent")
    assert table.games([named]) == ["heist", "maze"]
    means = {game: table.cell(named, game, "test").estimate.value for game in ("maze", "heist")}  # type: ignore[union-attr]
    assert means == {"maze": 5, "heist": 6}
    own = table.cell(Method("ppo", (("mirror", "True"), ("width", "2"))), "maze", "test")
    assert own is not None and own.estimate.value == 5
    assert [entry.number for entry in table.entries] == [1, 2, 3, 4]


def test_without_methods_csv_rows_have_no_further_names(scores: Path) -> None:
    assert all(entry.names == () for entry in table_of(scores).entries)


@pytest.mark.parametrize(
    "line, complaint",
    [
        ("ppo,maze,ppo,", "method is 'ppo'; accepted: a name that is not an algorithm's"),
        ("best,maze,ppo,width=3", "line 2 matches no score row: maze, PPO (width 3)"),
        ("best,maze,ppo", "line 2 is not a method row"),
    ],
)
def test_methods_csv_rejects_bad_lines(scores: Path, line: str, complaint: str) -> None:
    scores.with_name("methods.csv").write_text(HEADER + line + "\n")
    with pytest.raises(InputError) as refused:
        read_entries(scores)
    assert complaint in str(refused.value)
