"""The published scores in results/ and their report."""

from pathlib import Path

import numpy as np
import pytest

from expgen.paper import numbers
from expgen.report.ablation_sections import ensemble_size_section
from expgen.report.curves import published_curves
from expgen.report.entry import number_entries, read_entries
from expgen.report.methods import Method
from expgen.report.provenance import read_provenance
from expgen.report.score_table import ScoreTable
from expgen.runs.agent_files import read_agent
from expgen.runs.shipped import bundled_agents

SCORES = Path(__file__).parents[2] / "results" / "scores.csv"
TABLE = ScoreTable(number_entries(read_entries(SCORES), [SCORES]), resamples=50)


def test_published_maze_rows_state_the_ensemble_size_of_the_shipped_agent():
    shipped, made = bundled_agents()["maze/expgen"], read_provenance(SCORES)
    members = len(read_agent(shipped.folder.path).members)
    rows = [entry for entry in TABLE.entries if entry.file == str(SCORES)]
    of_it = [entry for entry in rows if made[entry.line - 1].config == shipped.trained["config"]]
    own = [entry for entry in of_it if entry.row.algorithm == "expgen"]
    whole = [entry for entry in own if not entry.method.setting("ensemble_size")]
    assert len(whole) > 30 and {entry.members for entry in whole} == {members}


def test_published_exploration_measures_come_from_exploration_csv():
    explored = [entry for entry in TABLE.entries if entry.measure != "return"]
    assert {Path(entry.file).name for entry in explored} == {"exploration.csv"} and len(explored) == 20
    made = read_provenance(SCORES.with_name("exploration.csv"))
    assert all(made[entry.line - 1].command for entry in explored)
    cell = TABLE.cell(Method("maxent"), "maze", "test", "oracle_share")
    assert cell is not None and cell.estimate == (0.937131, 0.929894, 0.944044)


def test_every_published_row_has_provenance_and_a_plain_agent_name():
    rows = [entry for entry in TABLE.entries if entry.file == str(SCORES)]
    assert [entry.line - 1 for entry in rows] == list(read_provenance(SCORES))
    assert not any("=" in entry.row.agent for entry in rows)


def test_every_published_row_was_measured_at_a_clean_commit():
    marked = [(entry.file, entry.line) for entry in TABLE.entries if entry.row.commit.endswith("+")]
    assert not marked


def test_published_curves_are_of_games_with_scores():
    assert {curve.game for curve in published_curves(SCORES)} <= set(TABLE.games())


def test_published_best_agents_are_one_method_of_the_report():
    best = Method("best agent")
    assert TABLE.games([best]) == [*numbers.games(), "minimaze"]
    for constants, iqm, gap in (("easy", 0.713, 0.313), ("rliable", 0.723, 0.302)):  # of docs/results/sixteen-games.md
        table = ScoreTable(TABLE.entries, constants, resamples=2)
        cells = {game: table.cell(best, game, "test") for game in numbers.games()}
        scores = [table.normalized(cell.estimate.value, game) for game, cell in cells.items() if cell is not None]
        assert len(scores) == 16 and sum(sorted(scores)[4:12]) / 8 == pytest.approx(iqm, abs=0.0005)
        assert 1 - sum(scores) / 16 == pytest.approx(gap, abs=0.0005)  # no score is above 1
        assert table.matrix([best], numbers.games())[best] == pytest.approx(np.array([scores]))


def test_published_table_5_has_every_ensemble_size_of_the_paper():
    section = ensemble_size_section(TABLE)
    assert section is not None
    rows = {row[1].text: row for row in section.tables[0].rows if row[0].text == "maze"}
    assert list(rows) == ["4", "6", "8", "10"]
    whole = TABLE.cell(Method("expgen"), "maze", "test")
    assert whole is not None and rows["10"][2].sort == whole.estimate.value
