"""ScoreTable: which rows a number is computed from."""

import numpy as np
import pytest

from expgen.report.entry import Entry
from expgen.report.methods import Method
from expgen.report.score_sections import leaders_note
from tests.report.score_rows import make_row, make_table


def test_members_and_tuned_settings_do_not_define_a_method():
    for settings, members in (("leader=3", 0), ("leader=3 members=10 tuned=alpha:0.2", 10)):
        entry = Entry(make_row(agent=f"expgen {settings}"), "scores.csv", 2)
        assert (entry.method.settings, entry.run, entry.members) == ((), (0, 3), members)


def test_by_members_separates_ensemble_sizes():
    agents = {"expgen leader=0 members=4": 6, "expgen leader=1 members=4": 7, "expgen leader=2 members=6": 9}
    rows = [make_row("expgen", agent=agent, mean=mean) for agent, mean in agents.items()]
    rows += [make_row("expgen", agent="expgen leader=3", mean=1), make_row("expgen", agent="expgen alpha=1 members=8")]
    cells = make_table(rows).by_members(Method("expgen"), "maze", "test")
    assert {size: cell.estimate.value for size, cell in cells.items()} == {4: 6.5, 6: 9}


def test_by_members_keeps_every_size_of_a_growing_population():
    rows = [make_row("expgen", agent=f"expgen members={size}", steps=size, mean=size) for size in (4, 10)]
    cells = make_table(rows).by_members(Method("expgen"), "maze", "test")
    assert {size: cell.estimate.value for size, cell in cells.items()} == {4: 4, 10: 10}


def test_variants_with_equal_values_sort_by_setting_name():
    table = make_table([make_row("expgen", agent=f"expgen {name}=6") for name in "dbeacf"])
    assert [method.settings[0][0] for method in table.methods()] == list("abcdef")


def test_games_sort_in_paper_order():
    table = make_table([make_row(game=game) for game in ("my-game", "maze", "bigfish")])
    assert table.games() == ["bigfish", "maze", "my-game"]


def test_cell_uses_last_evaluation_of_each_run():
    rows = [make_row(mean=mean, steps=steps) for mean, steps in ((1, 10), (2, 30), (3, 30), (4, 20))]
    rows.append(make_row(mean=8, seed=1, steps=30))
    cell = make_table(rows).cell(Method("ppo"), "maze", "test")
    assert [entry.row.mean_return for entry in cell.entries] == [3, 8]
    assert cell.estimate.value == 5.5 and cell.over == "runs"


def test_cell_excludes_runs_of_other_lengths():
    rows = [make_row(seed=seed, steps=25_000_000 - seed, mean=seed) for seed in range(3)]
    longer = make_row(seed=0, steps=50_000_000, mean=9)
    shorter = [make_row(seed=seed, steps=1_000_000, mean=1) for seed in (3, 4)]
    cell = make_table([*rows, longer, *shorter]).cell(Method("ppo"), "maze", "test")
    assert [entry.row.mean_return for entry in cell.entries] == [0, 1, 2]  # seed 0 before its longer training
    cell = make_table([longer, *shorter[:1]]).cell(Method("ppo"), "maze", "test")
    assert [entry.row.mean_return for entry in cell.entries] == [9]  # on a tie, the longer training


def test_gap_uses_the_same_runs_and_steps_for_both_splits():
    tested = [make_row(seed=seed, mean=4) for seed in (0, 1)]
    other_length = [make_row(seed=0, split="train", mean=10, steps=50_000_000)]
    other_run = [make_row(seed=2, split="train", mean=10)]
    assert make_table([*tested, *other_length, *other_run]).gap(Method("ppo"), "maze") is None
    alike = make_row(seed=1, split="train", mean=8)
    assert make_table([*tested, *other_length, *other_run, alike]).gap(Method("ppo"), "maze").value == 0.5


def test_cell_prefers_more_episodes_to_later_rows():
    rows = [make_row(mean=mean, episodes=episodes) for mean, episodes in ((1, 500), (2, 2000), (3, 2000), (4, 500))]
    assert make_table(rows).cell(Method("ppo"), "maze", "test").estimate.value == 3
    more_steps = make_row(mean=5, episodes=500, steps=26_000_000)
    assert make_table([*rows, more_steps]).cell(Method("ppo"), "maze", "test").estimate.value == 5


def test_cell_prefers_evaluations_to_curve_points():
    nan = float("nan")
    rows = [make_row(mean=5), make_row(mean=9, ci_low=nan, ci_high=nan, steps=26_000_000)]
    assert make_table(rows).cell(Method("ppo"), "maze", "test").estimate.value == 5
    assert make_table(rows[1:]).cell(Method("ppo"), "maze", "test").estimate.value == 9


def test_cell_averages_over_leaders():
    rows = [make_row("expgen", agent="expgen", mean=8), make_row("expgen", agent="expgen leader=1", mean=6)]
    cell = make_table(rows).cell(Method("expgen"), "maze", "test")
    assert cell.estimate.value == 7 and cell.over == "leaders"


def test_leaders_note_names_methods_scored_by_several_leaders():
    leaders = [make_row("expgen", agent=f"expgen leader={leader}") for leader in range(3)]
    others = [make_row(seed=0), make_row(seed=1), make_row("expgen", game="heist", agent="expgen")]
    table = make_table([*leaders, *others])
    note = " Intervals of ExpGen-PPO on maze are over leaders, which share members and explorer."
    assert leaders_note(table, table.methods(), ["maze", "heist"]) == note
    assert leaders_note(table, table.methods(), ["heist"]) == ""
    other_seeds = [make_row("expgen", agent="expgen", seed=seed) for seed in range(3)]
    assert make_table(other_seeds).cell(Method("expgen"), "maze", "test").over == "runs"


def test_cell_of_one_run_has_the_interval_over_levels():
    cell = make_table([make_row(mean=5, ci_low=4.5, ci_high=5.4)]).cell(Method("ppo"), "maze", "test")
    assert cell.estimate == (5, 4.5, 5.4) and cell.over == "levels"


def test_cell_prefers_all_unseen_levels_to_a_subset():
    rows = [make_row(mean=5), make_row(mean=9, levels="201:200")]
    assert make_table(rows).cell(Method("ppo"), "maze", "test").estimate.value == 5
    assert make_table(rows[1:]).cell(Method("ppo"), "maze", "test").estimate.value == 9


def test_matrix_and_gap_match_hand_computation():
    rows = [
        make_row(seed=seed, game=game, mean=mean + shift, split=split)
        for split, shift in (("test", 0), ("train", 2))
        for seed, game, mean in ((0, "maze", 7.5), (1, "maze", 5), (0, "heist", 3.5))
    ]
    table = make_table(rows)
    method = Method("ppo")
    np.testing.assert_allclose(table.matrix([method], ["maze"])[method], [[0.5], [0.0]])
    assert table.gap(method, "maze").value == pytest.approx(2 / 8.25)
    assert table.gap(method, "coinrun") is None


def test_matrix_has_means_over_all_runs_if_games_differ_in_their_number():
    """Maze 6, 8 and 10 are 0.2, 0.6 and 1 of the way from 5 to 10; Heist 6.75 is half of 3.5 to 10."""
    maze = [make_row(seed=seed, mean=mean) for seed, mean in enumerate((6, 8, 10))]
    heist = [make_row(seed=seed, game="heist", mean=6.75) for seed in range(3)]
    method, games = Method("ppo"), ["maze", "heist"]
    equal, unequal = make_table([*maze, *heist]), make_table([*maze, *heist[:1]])
    assert equal.num_runs(method, games) == (3, 3) and unequal.num_runs(method, games) == (1, 3)
    np.testing.assert_allclose(equal.matrix([method], games)[method], [[0.2, 0.5], [0.6, 0.5], [1.0, 0.5]])
    np.testing.assert_allclose(unequal.matrix([method], games)[method], [[0.6, 0.5]])


def test_matrix_uses_selected_constants():
    rows = [make_row(game="jumper", mean=5.5)]
    for constants, expected in (("easy", 2.5 / 7), ("rliable", 0.5)):
        table = make_table(rows, constants=constants)
        assert table.matrix([Method("ppo")], ["jumper"])[Method("ppo")] == pytest.approx(expected)


def test_comparable_prefers_two_methods_on_one_game_to_one_method_on_three():
    on = {"ppo": ("maze", "heist", "jumper"), "expgen": ("maze",)}
    table = make_table([make_row(algorithm, game) for algorithm, games in on.items() for game in games])
    methods, games = table.comparable(table.methods())
    assert [method.algorithm for method in methods] == ["ppo", "expgen"] and games == ["maze"]


def test_comparable_maximises_methods_times_games():
    on = {"ppo": ("maze", "heist"), "expgen": ("maze", "heist"), "leep": ("maze",), "random": ("minimaze",)}
    table = make_table([make_row(algorithm, game) for algorithm, games in on.items() for game in games])
    methods, games = table.comparable(table.methods())
    assert [method.algorithm for method in methods] == ["ppo", "expgen"] and games == ["heist", "maze"]
