"""Sections of the report: each exhibit is built from made-up scores and has the expected numbers."""

import math

import numpy as np
import pytest
from matplotlib.colors import to_hex

from expgen.paper import numbers
from expgen.paper.exhibits import EXHIBITS
from expgen.report.curves import Curve
from expgen.report.lines import interpolate_runs, short_steps
from expgen.report.sections import BUILDERS, build_sections
from expgen.report.style import SPLIT_COLORS
from tests.report.score_rows import make_row, make_table, paper_like_rows


@pytest.fixture(scope="module")
def sections():
    table = make_table(paper_like_rows(), resamples=50)
    return {section.name: section for section in build_sections(table)}


def test_report_has_every_score_exhibit_in_paper_order(sections):
    assert [name for name in sections if name in EXHIBITS] == [name for name in EXHIBITS if name in BUILDERS]
    assert {*EXHIBITS} - {*BUILDERS} == {"figure-1", "figure-3", "figure-8", "table-3", "table-6"}
    assert [name for name in sections if name not in EXHIBITS] == [
        "finding", "glance", "aggregates", "exploration", "everything",
    ]  # fmt: skip


def test_figures_have_alternative_text_and_data(sections):
    for section in sections.values():
        for words, figure in section.figures:
            assert len(words) > 20
            assert any(axes.has_data() for axes in figure.axes), section.name


def test_repeated_note_is_replaced_by_a_reference(sections):
    assert sections["table-1"].note.startswith("Mean return with a 95 % interval")
    assert sections["table-2"].note == sections["table-10"].note == "Notes as under “Table 1”."


def test_table_1_has_all_games_and_methods(sections):
    by_game, each = sections["table-1"].tables
    assert len(by_game.rows) == 16 and len(each.rows) == 128 + 1  # PPO + GRU was scored on Maze
    maze = next(row for row in by_game.rows if row[0].text == "maze")
    assert sum(cell.bold for cell in maze) == 1
    assert "(8.3)" in maze[by_game.columns.index("ExpGen-PPO")].text


def test_figure_5_has_a_panel_per_gamma_and_a_line_per_beta(sections):
    panels = [figure.axes[0] for _, figure in sections["figure-5"].figures]
    assert [axes.get_title() for axes in panels] == ["γ = 0.5", "γ = 0.9"]
    labels = panels[0].get_legend_handles_labels()[1]
    assert labels == ["β = 0.1", "β = 0.5", "β = 0.9", "PPO", "ExpGen-PPO"]


def test_figure_4_has_the_three_games_only(sections):
    panels = [figure.axes[0] for _, figure in sections["figure-4"].figures]
    assert {axes.get_title() for axes in panels} == {"maze", "jumper", "miner"} and len(panels) == 6


def test_figure_7_has_the_papers_aggregates(sections):
    rows = {(row[0].text, row[1].text): row for row in sections["figure-7"].tables[0].rows}
    assert rows["ExpGen-IDAAC", "mean"][-1].text == "0.584"
    assert rows["PPO", "optimality gap"][-1].text == "0.687"


def test_figure_10_has_the_papers_gaps(sections):
    rows = {(row[0].text, row[1].text): row for row in sections["figure-10"].tables[0].rows}
    assert len(rows) == 32
    assert rows["maze", "PPO"][4].text == "38.8 %"
    assert rows["maze", "maxEnt"][2].sort == pytest.approx(3 / 33, abs=0.02)


def test_table_7_recomputes_the_papers_gap(sections):
    table = sections["table-7"].tables[0]
    fifth = next(row for row in table.rows if row[0].text == "maze" and row[1].text == "5")
    assert fifth[table.columns.index("paper's gap")].text == "18.1 %"  # printed as 15.5


def test_table_5_has_complete_ensembles_and_parts_of_them():
    agents = {
        "expgen leader=0 ensemble_size=3": 6.0, "expgen leader=0 members=5": 7.0, "expgen leader=1 members=5": 8.0,
        "expgen min_agree=2 members=5": 1.0, "expgen leader=0 fallback=random members=5": 2.0,
    }  # fmt: skip
    rows = [make_row("expgen", agent=agent, mean=mean) for agent, mean in agents.items()]
    rows.append(make_row("expgen", "heist", agent="expgen members=5"))  # no part of it was scored
    rows.append(make_row("expgen-idaac", agent="expgen-idaac ensemble_size=3", mean=1))  # not in Table 5
    rows.append(make_row("expgen", agent="expgen min_agree=2 ensemble_size=3", mean=1))
    (table,) = next(s for s in build_sections(make_table(rows, resamples=20)) if s.name == "table-5").tables
    assert [[cell.text for cell in row[:3]] for row in table.rows] == [["maze", "3", "6.00"], ["maze", "5", "7.50"]]
    both = make_table([*rows, make_row("expgen", agent="expgen ensemble_size=5", mean=9)], resamples=20)
    (table,) = next(s for s in build_sections(both) if s.name == "table-5").tables
    assert [row[2].text for row in table.rows] == ["6.00", "9.00"]  # ensemble_size has priority over members


def test_intervals_over_leaders_are_noted():
    rows = [make_row(seed=seed) for seed in range(3)]
    rows += [make_row("expgen", agent=f"expgen leader={leader}", mean=8 + leader / 10) for leader in range(3)]
    found = {section.name: section for section in build_sections(make_table(rows, resamples=20))}
    runs = {row[1].text: row[4].text for row in found["table-1"].tables[1].rows}
    assert runs == {"PPO": "3", "ExpGen-PPO": "3 leaders"}
    for name in ("glance", "figure-2", "figure-6", "figure-7"):
        assert "Intervals of ExpGen-PPO on maze are over leaders, which share members" in found[name].note
    heist = [make_row(game="heist"), make_row("expgen", game="heist", agent="expgen")]
    for section in build_sections(make_table([*rows, *heist], resamples=20)):
        if section.name in ("glance", "figure-2"):
            assert "Intervals of ExpGen-PPO on maze are over leaders" in section.note
    plain = build_sections(make_table([*rows[:3], make_row("expgen", agent="expgen")], resamples=20))
    assert not any("Intervals of" in section.note for section in plain)


def test_one_row_is_enough_for_a_report():
    names = [section.name for section in build_sections(make_table([make_row(mean=3)]))]
    assert names == ["figure-2", "table-1", "figure-7", "figure-12", "everything"]


def test_other_environments_get_their_own_section_without_the_paper():
    own = [
        make_row(algorithm, game, split=split, env=env, mean=mean)
        for game, env in (("my-game", "gymnasium:my-game"), ("maze", "gymnasium:maze"))
        for algorithm, mean in (("ppo", 3), ("expgen", 4))
        for split in ("train", "test")
    ]
    sections = {section.name: section for section in build_sections(make_table(own, resamples=20))}
    assert list(sections) == ["finding", "glance", "scores", "everything"]
    assert sections["scores"].title == "Scores on maze and my-game"
    for section in sections.values():
        assert not any("paper" in text for text in (section.note, section.title, *section.points))
    assert not any("paper" in name for table in sections["scores"].tables for name in table.columns)
    both = {section.name: section for section in build_sections(make_table([*own, make_row()], resamples=20))}
    assert [row[0].text for row in both["table-1"].tables[0].rows] == ["maze"] and len(
        both["scores"].tables[0].rows
    ) == 4


def test_requested_exhibits_show_minimaze_scores():
    rows = [
        make_row(algorithm, "minimaze", env="minimaze", mean=mean) for algorithm, mean in (("ppo", 5), ("expgen", 8))
    ]
    asked = {"figure-2", "table-1", "figure-6", "figure-7"}
    sections = {section.name: section for section in build_sections(make_table(rows, resamples=20), only=asked)}
    assert asked <= sections.keys()
    rows = {(row[0].text, row[1].text): row for row in sections["figure-7"].tables[0].rows}
    mean = rows["ExpGen-PPO", "mean"]
    assert [cell.text for cell in mean[2:4]] == ["0.600", "–"]  # (8 − 5) / (10 − 5)


def test_interpolate_runs_uses_common_steps():
    steps, scores = interpolate_runs([np.array([[0, 0.0], [10, 1.0]]), np.array([[5, 2.0], [20, 5.0]])])
    np.testing.assert_allclose(steps, [5, 10])
    np.testing.assert_allclose(scores, [[0.5, 1.0], [2.0, 3.0]])


def test_step_counts_are_shortened():
    assert [short_steps(n) for n in (25e6, 1_499_136, 4096, 20)] == ["25M", "1.5M", "4.1k", "20"]
    assert [short_steps(n) for n in (999, 999_936, 1.1e9, 5e12)] == ["999", "1M", "1.1B", "5000B"]


def test_glance_figure_sorts_by_test_score():
    means = {("ppo", "train"): 9.5, ("ppo", "test"): 5.0, ("expgen", "train"): 9.0, ("expgen", "test"): 8.0}
    rows = [make_row(algorithm, split=split, mean=mean) for (algorithm, split), mean in means.items()]
    _, glance, *_ = build_sections(make_table(rows, resamples=10))
    ((_, figure),) = glance.figures
    assert glance.title == "At a glance"
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["PPO", "ExpGen-PPO"]  # from the bottom
    assert figure.axes[0].get_ylim() == (-0.5, 1.5)  # markers at 0 and 1 are not cut off
    shown = {line.get_label(): list(line.get_xdata()) for line in figure.axes[0].lines}
    assert shown["train"] == [9.5, 9.0]
    (tested,) = figure.axes[0].containers
    assert tested.get_label() == "test" and list(tested[0].get_xdata()) == [5.0, 8.0]


def test_finding_names_best_method_margin_and_missing_scores():
    rows = [make_row(seed=seed, mean=5 + seed / 10) for seed in range(3)]
    rows += [make_row("expgen", seed=seed, mean=8 + seed / 10, agent="expgen", steps=275_000_000) for seed in range(3)]
    rows += [make_row(game="heist", mean=3), make_row("expgen", game="heist", mean=2, agent="expgen")]
    rows.append(make_row("idaac", game="bigfish", mean=9))
    finding = build_sections(make_table(rows, resamples=50))[0]
    assert finding.title == "Findings"
    assert finding.points == [
        "heist: highest score on unseen levels: PPO with 3.00 (2.70 to 3.30; 1 run, 25M steps, 1,000 episodes), "
        "1.00 above ExpGen-PPO with 2.00 (1.70 to 2.30; 1 run, 25M steps, 1,000 episodes). "
        "The paper's PPO has 2.4 ± 0.5.",
        "maze: highest score on unseen levels: ExpGen-PPO with 8.10 (7.85 to 8.35; 3 runs, 275M steps, 3,000 "
        "episodes), 3.00 above PPO with 5.10 (4.85 to 5.35; 3 runs, 25M steps, 3,000 episodes). "
        "Their intervals over runs do not overlap. The paper's ExpGen-PPO has 8.3 ± 0.2.",
        "Missing: a second training run of PPO (heist) and ExpGen-PPO (heist). The variation between training runs is "
        "not known.",
        "Missing: a second method on bigfish (IDAAC).",
        "Missing: 13 of the paper's 16 games.",
        "Missing: the paper's methods PLR, UCB-DrAC, PPG, LEEP and ExpGen-IDAAC.",
    ]


def test_finding_names_a_variant_first_only_if_intervals_do_not_overlap():
    plain = [make_row("maxent", game="heist", mean=6.9), make_row("expgen", game="heist", mean=7.8, agent="expgen")]
    better = [
        make_row("maxent", game="heist", seed=s, mean=9.2 + s / 10, agent="member0 end_value=1") for s in range(3)
    ]
    point = build_sections(make_table([*plain, *better], resamples=50))[0].points[0]
    assert point.startswith(
        "heist: highest score on unseen levels: maxEnt (end value 1) with 9.30 (9.05 to 9.55; 3 runs, 25M steps, "
        "3,000 episodes). With default settings: ExpGen-PPO with 7.80 (7.50 to 8.10; 1 run"
    )
    close = make_row("maxent", game="heist", mean=7.9, agent="member0 end_value=1")
    point = build_sections(make_table([*plain, close], resamples=50))[0].points[0]
    assert point.startswith("heist: highest score on unseen levels: ExpGen-PPO with 7.80")


def test_finding_over_many_games_names_the_highest_iqm(sections):
    complete, overall, best, *missing = sections["finding"].points
    values = {row[0].text: row[2].sort for row in sections["figure-7"].tables[0].rows if row[1].text == "IQM"}
    (first, high), (second, low) = sorted(values.items(), key=lambda pair: -pair[1])[:2]
    assert complete.startswith(
        f"On all 16 of the paper's games {first} has an IQM of {high:.2f} and an optimality gap of "
    )
    assert complete.endswith("ExpGen-IDAAC is best, with an IQM of 0.61 and an optimality gap of 0.42.")
    assert overall.startswith(
        f"Over 16 games {first} has the highest IQM of normalised scores on unseen levels, {high:.2f} ("
    )
    assert overall.endswith(f", 3 runs), {high - low:.2f} above {second}.")
    assert best.startswith("Best on unseen levels: ") and best.endswith(" of 16 games.") and missing == []


def test_training_curves_exclude_evaluations_of_other_runs():
    lengths = [make_row(steps=steps, mean=steps / 10) for steps in (10, 20, 30)]  # three evaluations, not a curve
    assert "training" not in {section.name for section in build_sections(make_table(lengths, resamples=10))}
    points = [
        make_row(seed=s, steps=t, mean=t + s, ci_low=math.nan, ci_high=math.nan) for s in (0, 2) for t in (1, 2, 3)
    ]
    curves = [Curve("maxent", "maze", f"run{s}", np.array([[1, s], [2, s + 1], [3, s + 4]]), {}) for s in (0, 2)]
    sections = {s.name: s for s in build_sections(make_table(points, resamples=10), curves=curves)}
    trained, tested = (figure.axes[0] for _, figure in sections["training"].figures)
    assert (trained.get_ylabel(), tested.get_ylabel()) == ("return of training episodes", "return on unseen levels")
    for axes, label, means in ((trained, "maxEnt (2)", [1, 2, 5]), (tested, "PPO (2)", [2, 3, 4])):
        (line,) = axes.lines
        assert line.get_label() == label and list(line.get_ydata()) == means and list(line.get_xdata()) == [1, 2, 3]
        band = axes.collections[0].get_paths()[0].vertices[:, 1]
        assert (band.min(), band.max()) == (means[0] - 1, means[-1] + 1)  # the deviation of two runs 2 apart is 1


def drawn(axes, color):
    """Return the lines of `axes` that are drawn in `color`."""
    return [line for line in axes.get_lines() if to_hex(line.get_color()).upper() == color.upper()]


def test_glance_figure_colors_train_and_test_scores():
    rows = [make_row(name, split=split, mean=mean, seed=seed) for seed in range(3)
            for name, split, mean in (("ppo", "train", 9.5), ("ppo", "test", 5.5), ("idaac", "train", 8.5),
                                      ("idaac", "test", 6.5))]  # fmt: skip
    glance = next(s for s in build_sections(make_table(rows, resamples=20)) if s.name == "glance")
    axes = glance.figures[0][1].axes[0]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["PPO", "IDAAC"]
    (train,), (test, *_) = drawn(axes, SPLIT_COLORS["train"]), drawn(axes, SPLIT_COLORS["test"])
    assert train.get_label() == "train" and train.get_xdata() == pytest.approx([9.5, 8.5])
    assert test.get_xdata() == pytest.approx([5.5, 6.5])
    labels = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    assert to_hex(labels["test"][0].get_color()).upper() == SPLIT_COLORS["test"].upper()


@pytest.mark.parametrize(
    ("name", "algorithm", "settings"), [("figure-9", "ppo-gru", "hidden=true"), ("figure-13", "idaac", "budget=100M")]
)
def test_figures_9_and_13_label_train_and_test_curves_correctly(name, algorithm, settings):
    rows = [
        make_row(algorithm, split=split, mean=mean, steps=step * 1_000_000, agent=f"member0 {settings}")
        for step in range(1, 6)
        for split, mean in (("train", 5.0 + step), ("test", 4.0))
    ]
    section = next(s for s in build_sections(make_table(rows, resamples=20)) if s.name == name)
    axes = section.figures[0][1].axes[0]
    found = {line.get_label(): line for line in axes.get_lines() if line.get_label() in ("train", "test")}
    assert found["train"].get_ydata() == pytest.approx([6, 7, 8, 9, 10])
    assert found["test"].get_ydata() == pytest.approx([4] * 5)
    assert {split: to_hex(line.get_color()).upper() for split, line in found.items()} == SPLIT_COLORS


def test_figure_4_has_train_and_test_scores_by_number_of_levels():
    rows = [
        make_row(split=split, mean=mean, agent=f"member0 {word}".strip(), seed=seed)
        for seed in range(3)
        for word, train, test in (("", 9.0, 5.0), ("levels=500", 8.5, 7.0))
        for split, mean in (("train", train), ("test", test))
    ]
    section = next(s for s in build_sections(make_table(rows, resamples=20)) if s.name == "figure-4")
    lines = {line.get_label(): line for line in section.figures[0][1].axes[0].get_lines()}
    assert list(lines["train"].get_ydata()) == [9.0, 8.5] and list(lines["test"].get_ydata()) == [5.0, 7.0]
    assert {split: to_hex(lines[split].get_color()).upper() for split in lines} == SPLIT_COLORS
    (table,) = section.tables
    columns = [table.columns.index(name) for name in ("train", "test")]
    assert [[row[at].text for at in columns] for row in table.rows] == [["9.00", "5.00"], ["8.50", "7.00"]]


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [("ppo", "levels=0:200"), ("ppo", "levels=nan"), ("maxent", "levels="), ("maxent", "levels=0")],
)
def test_figure_4_omits_non_numeric_level_counts(algorithm, settings):
    measure = " measure=intrinsic" if algorithm == "maxent" else ""
    rows = [make_row(algorithm, split=s, agent=f"member0 {settings}{measure}") for s in ("train", "test")]
    rows += [make_row(algorithm, split=s, agent=f"member0 levels=500{measure}") for s in ("train", "test")]
    section = next(s for s in build_sections(make_table(rows, resamples=10)) if s.name == "figure-4")
    assert [row[3].text for row in section.tables[0].rows] == ["500"]


def test_figure_5_draws_non_numeric_beta():
    rows = [make_row("mixed", steps=n, agent=f"m beta={beta} gamma=0.5") for n in (1, 2) for beta in ("abc", "0.1")]
    section = next(s for s in build_sections(make_table(rows, resamples=10)) if s.name == "figure-5")
    assert section.figures[0][1].axes[0].get_legend_handles_labels()[1] == ["β = abc", "β = 0.1"]


def test_curve_points_are_reported_without_interval():
    rows = [make_row(name, mean=mean, ci_low=math.nan, ci_high=math.nan) for name, mean in (("ppo", 5), ("expgen", 8))]
    sections = {section.name: section for section in build_sections(make_table(rows, resamples=10))}
    point = sections["finding"].points[0]
    assert point.startswith(
        "maze: highest score on unseen levels: ExpGen-PPO with 8.00 (1 run, 25M steps, 1,000 episodes), "
    )
    assert [row[-1].text for row in sections["table-1"].tables[1].rows] == ["–", "–"]  # nothing to overlap


def test_finding_has_no_interval_over_games_with_one_run():
    rows = [make_row(name, game, mean=mean) for name, mean in (("ppo", 5), ("expgen", 8)) for game in numbers.games()]
    points = build_sections(make_table(rows, resamples=10))[0].points
    assert "(1 run); of the paper's methods" in points[0]
    assert "on unseen levels, 0.55 (1 run), 0.34 above PPO." in points[1]


def test_missing_score_has_no_sort_key():
    rows = [make_row(), make_row(game="heist"), make_row("expgen", game="heist", agent="expgen")]
    by_game = next(s for s in build_sections(make_table(rows, resamples=10)) if s.name == "table-1").tables[0]
    assert [(row[2].text, row[2].sort) for row in by_game.rows] == [("5.0 (7.4)", 5.0), ("– (8.3)", None)]
