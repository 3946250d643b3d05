"""exploration.csv: writing, reading, missing measures and other files."""

import math
from pathlib import Path

import pytest

from expgen.errors import InputError
from expgen.evaluation.evaluate import Episode, summarize
from expgen.evaluation.scores import Score
from expgen.exploration.explore import Exploration, Mean
from expgen.exploration.rows import append_exploration, exploration_row, mean_of, read_exploration

SCORE = Score(
    "maxent", "maze", "procgen:maze", 3, "test", "all", 100, 50, 4.5, 2.0, 0.45, 4.0, 5.0, "explorer", "v1", "levels=5"
)  # fmt: skip
FOUND = Exploration(
    intrinsic_return=Mean(30.25, 28.0, 32.0),
    novelty=Mean(40.0, 39.0, 41.0),
    oracle_share=None,
    oracle_success=None,
    evaluation=summarize([Episode(0, 5.0, 10, False)]),
    episodes=[],
)


def test_exploration_rows_round_trip_without_return_columns(tmp_path: Path) -> None:
    path = tmp_path / "exploration.csv"
    append_exploration(path, [exploration_row(SCORE, FOUND)])
    append_exploration(path, [exploration_row(SCORE, FOUND)])
    (line, row), (last, again) = read_exploration(path)
    assert (line, last) == (2, 3) and repr(row) == repr(again)
    assert (row.intrinsic_return, row.intrinsic_return_low, row.intrinsic_return_high) == (30.25, 28.0, 32.0)
    assert (row.algorithm, row.seed, row.split) == ("maxent", 3, "test")
    assert (row.agent, row.settings) == ("explorer", "levels=5")
    assert not {"mean_return", "std_return", "solved_rate"} & set(path.read_text().splitlines()[0].split(","))


def test_missing_measure_is_nan_and_has_no_mean(tmp_path: Path) -> None:
    row = exploration_row(SCORE, FOUND)
    assert math.isnan(row.oracle_share) and mean_of(row, "oracle_share") is None
    assert mean_of(row, "novelty") == Mean(40.0, 39.0, 41.0)


def test_append_exploration_rejects_score_file(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("algorithm,game\nppo,maze\n")
    with pytest.raises(InputError, match=r"scores.csv is not a file of exploration rows: it has columns .*; accepted"):
        append_exploration(tmp_path / "scores.csv", [exploration_row(SCORE, FOUND)])
