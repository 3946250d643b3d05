"""Aggregates over games compared with the paper's and later ones, with both sets of constants."""

from itertools import pairwise

import numpy as np
import pytest

from expgen.paper import numbers
from expgen.report.aggregate_sections import aggregate_section, published_section
from expgen.report.bars import aggregate_metrics
from expgen.report.methods import Method
from expgen.report.statistics import METRICS, Estimate
from expgen.report.style import figure_style
from tests.report.score_rows import make_row, make_table

CLOSE = {"our IDAAC": 0.3733, "best agent": 0.3396}  # optimality gaps of results/scores.csv


def rows_of(rows, **settings):
    """Return the texts of the four metrics by (method, source, games, constants)."""
    section = published_section(make_table(rows, resamples=20, **settings))
    assert section is not None
    (table,) = section.tables
    return {tuple(row[i].text for i in (0, 1, 2, 4)): [cell.text for cell in row[5:]] for row in table.rows}


def test_aggregates_match_hand_computation_with_both_constants():
    """Maze 8 is 0.6 of the way from 5 to 10. Jumper 6.5: half of 3 to 10, or 5.5 / 9 of 1 to 10 (rliable's)."""
    found = rows_of([make_row(game="maze", mean=8.0), make_row(game="jumper", mean=6.5)])
    assert found["PPO", "ours", "2", "easy"] == ["0.550", "0.550", "0.550", "0.450"]
    mean = (0.6 + 5.5 / 9) / 2
    assert found["PPO", "ours", "2", "rliable"] == [f"{mean:.3f}"] * 3 + [f"{1 - mean:.3f}"]


def test_paper_aggregates_cover_our_games_and_all_sixteen():
    """The paper's PPO: Maze 5.6 → 0.12, Jumper 5.8 → 0.4."""
    found = rows_of([make_row(game=game, mean=8.0) for game in ("maze", "jumper")])
    assert found["PPO", "paper", "2", "easy"] == ["0.260", "0.260", "0.260", "0.740"]
    assert found["ExpGen-IDAAC", "paper", "16", "easy"] == ["0.588", "0.612", "0.584", "0.416"]
    assert found["ExpGen-IDAAC", "paper", "16", "rliable"] == ["0.625", "0.632", "0.594", "0.406"]


def test_later_publications_have_a_source():
    found = rows_of([make_row(game=game) for game in ("maze", "jumper")])
    source = "Jesson & Jiang 2024, arXiv 2410.10905"
    assert found["VSOP-3D+", source, "16", "not known"] == ["–", "≈ 0.70", "–", "0.36"]
    assert all(name and source for (name, source), _ in numbers.later_aggregates())


def test_aggregates_have_intervals_with_two_or_more_runs():
    runs = [make_row(game=game, seed=seed, mean=7.0 + seed) for game in ("maze", "jumper") for seed in range(3)]
    (text, *_) = rows_of(runs)["PPO", "ours", "2", "easy"]
    value, low, high = (float(number) for number in text.replace("(", "").replace(")", "").replace("to", "").split())
    assert value == pytest.approx(np.median([(8 - 5) / 5, (8 - 3) / 7]), abs=1e-3) and low < value < high


def test_aggregates_of_unequal_runs_are_those_of_the_means_and_say_so():
    """Maze 6, 8 and 10 → 0.6 on average; Jumper 6.5 → 0.5. The first seed alone would give (0.2 + 0.5) / 2."""
    maze = [make_row(game="maze", seed=seed, mean=mean) for seed, mean in enumerate((6.0, 8.0, 10.0))]
    table = make_table([*maze, make_row(game="jumper", mean=6.5)], resamples=20)
    published, aggregated = published_section(table), aggregate_section(table)
    assert published is not None and aggregated is not None
    assert [cell.text for cell in published.tables[0].rows[0][3:8]] == ["1 to 3", "easy", "0.550", "0.550", "0.550"]
    assert [cell.text for cell in aggregated.tables[0].rows[0][2:5]] == ["0.550", "–", "1 to 3"]
    assert "1 to 3 runs per method" in aggregated.note
    assert "PPO: not as many runs of every game, so the mean of each game counts as one run." in aggregated.note


def test_aggregates_need_two_games_and_variants_need_all_games():
    table = make_table([make_row(game="maze")], resamples=20)
    assert published_section(table) is None
    variant = [make_row("expgen", game=game, agent="expgen vote=majority", mean=6.0) for game in numbers.games()]
    assert ("ExpGen-PPO (vote majority)", "ours", "16", "easy") in rows_of(variant)
    assert published_section(make_table(variant[:15], resamples=20)) is None


def test_tick_labels_of_aggregates_are_inside_the_figure_and_apart():
    found = {Method(name): {m: Estimate(value, value, value) for m in METRICS} for name, value in CLOSE.items()}
    for figure in aggregate_metrics(found, {}).values():
        axes = figure.axes[0]
        with figure_style():
            figure.draw_without_rendering()
            shown = zip(axes.get_xticks(), (label.get_window_extent() for label in axes.get_xticklabels()))
        low, high = axes.get_xlim()
        boxes = [box for tick, box in shown if low <= tick <= high]
        assert len(boxes) > 1 and boxes[-1].x1 <= figure.bbox.x1
        assert all(left.x1 + 9 < right.x0 for left, right in pairwise(boxes))
