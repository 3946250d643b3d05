"""Time spent on a job, counted over sittings, also those that were killed."""

import json
from pathlib import Path

import pytest

from expgen.reproduce.spent import Spent


def test_a_sitting_counts_on_from_those_before(tmp_path: Path) -> None:
    file = tmp_path / "spent.json"
    first = Spent(file)
    assert 0 <= first.seconds < 60 and not file.exists()  # nothing is written where nothing was worked on
    file.write_text('{"seconds": 500}')
    second = Spent(file)
    second.note()
    assert 500 <= json.loads(file.read_text())["seconds"] <= second.seconds < 560
    assert Spent(file).seconds >= 500


def test_it_is_noted_now_and_then_so_that_a_kill_costs_little(tmp_path: Path) -> None:
    seldom, often = Spent(tmp_path / "seldom.json", 1e6), Spent(tmp_path / "often.json", 0)
    seldom.note_now_and_then()
    often.note_now_and_then()
    assert not seldom.file.exists() and often.file.exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"seconds": "long"}', '{"seconds": NaN}', "\udcff"])
def test_a_damaged_note_costs_the_time_and_not_the_job(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "spent.json"
    file.write_text(text, errors="surrogateescape")
    assert 0 <= Spent(file).seconds < 60
    assert capsys.readouterr().err == f"expgen: {file} is damaged; time is counted from 0 again\n"
