"""What results/ says of our own runs, and the report that it makes."""

from pathlib import Path

from expgen.report.ablation_sections import ensemble_size_section
from expgen.report.entry import as_entries, rows_of
from expgen.report.methods import Method
from expgen.report.provenance import read_provenance
from expgen.report.score_table import ScoreTable
from expgen.runs.shipped import find_run

SCORES = Path(__file__).parents[2] / "results" / "scores.csv"
TABLE = ScoreTable(as_entries(rows_of(SCORES), [SCORES]), resamples=50)


def test_ensembles_of_the_shipped_run_have_as_many_members_as_its_config_says():
    config, _ = find_run("maze/expgen").folder.read_config()
    made = read_provenance(SCORES)
    own = [e for e in TABLE.entries if e.row.algorithm == config.algo and made[e.line - 1]["config"] == config.digest()]
    whole = [entry for entry in own if not entry.method.setting("ensemble_size")]
    assert len(whole) > 30 and {entry.members for entry in whole} == {config.members}


def test_table_5_has_every_size_that_the_paper_has():
    section = ensemble_size_section(TABLE)
    assert section is not None
    rows = {row[1].text: row for row in section.tables[0].rows if row[0].text == "maze"}
    assert list(rows) == ["4", "6", "8", "10"]
    whole = TABLE.cell(Method("expgen"), "maze", "test")
    assert whole is not None and rows["10"][2].sort == whole.estimate.value
