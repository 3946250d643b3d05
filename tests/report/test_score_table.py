"""Which rows stand behind a number."""

import numpy as np
import pytest

from expgen.report.entry import Entry
from expgen.report.methods import Method
from tests.report.score_rows import make_row, make_table


def test_each_leader_is_a_run_and_no_setting():
    entry = Entry(make_row(agent="expgen leader=3 min_agree=2 fallback=random"), "scores.csv", 2)
    assert entry.method.settings == (("fallback", "random"), ("min_agree", "2"))
    assert entry.run == (0, 3)


def test_the_size_of_a_whole_ensemble_and_what_was_tuned_make_no_other_method():
    for settings, members in (("leader=3", 0), ("leader=3 members=10 tuned=alpha:0.2", 10)):
        entry = Entry(make_row(agent=f"expgen {settings}"), "scores.csv", 2)
        assert (entry.method.settings, entry.run, entry.members) == ((), (0, 3), members)


def test_whole_ensembles_are_told_apart_by_their_members():
    agents = {"expgen leader=0 members=4": 6, "expgen leader=1 members=4": 7, "expgen leader=2 members=6": 9}
    rows = [make_row("expgen", agent=agent, mean=mean) for agent, mean in agents.items()]
    rows += [make_row("expgen", agent="expgen leader=3", mean=1), make_row("expgen", agent="expgen alpha=1 members=8")]
    cells = make_table(rows).by_members(Method("expgen"), "maze", "test")
    assert {size: cell.estimate.value for size, cell in cells.items()} == {4: 6.5, 6: 9}


def test_a_population_that_has_grown_counts_at_each_size():
    rows = [make_row("expgen", agent=f"expgen members={size}", steps=size, mean=size) for size in (4, 10)]
    cells = make_table(rows).by_members(Method("expgen"), "maze", "test")
    assert {size: cell.estimate.value for size, cell in cells.items()} == {4: 4, 10: 10}


def test_methods_are_labelled_as_in_the_paper():
    assert Method("expgen").label == "ExpGen-PPO"
    assert Method("expgen", (("fallback", "random"),)).label == "Ensemble + random"
    assert Method("maxent", (("levels", "500"),)).label == "maxEnt (levels 500)"
    assert Method("maxent", (("end_value", "1"), ("once", "True"))).label == "maxEnt (end value 1, once)"
    assert Method("mine").label == "mine"


def test_variants_sort_by_value_and_methods_as_in_the_paper():
    names = ["levels=5000", "levels=500", "levels=1000"]
    table = make_table([make_row(agent=f"member0 {name}") for name in names] + [make_row("plr"), make_row("zzz")])
    labels = [method.label for method in table.methods()]
    assert labels == ["PPO (levels 500)", "PPO (levels 1000)", "PPO (levels 5000)", "PLR", "zzz"]


def test_variants_of_one_value_sort_by_what_has_it():
    table = make_table([make_row("expgen", agent=f"expgen {name}=6") for name in "dbeacf"])
    assert [method.settings[0][0] for method in table.methods()] == list("abcdef")


def test_games_come_in_the_paper_s_order():
    table = make_table([make_row(game=game) for game in ("my-game", "maze", "bigfish")])
    assert table.games() == ["bigfish", "maze", "my-game"]


def test_a_run_counts_once_with_its_most_steps_and_last_evaluation():
    rows = [make_row(mean=mean, steps=steps) for mean, steps in ((1, 10), (2, 30), (3, 30), (4, 20))]
    rows.append(make_row(mean=8, seed=1, steps=30))
    cell = make_table(rows).cell(Method("ppo"), "maze", "test")
    assert [entry.row.mean_return for entry in cell.entries] == [3, 8]
    assert cell.estimate.value == 5.5 and cell.over == "runs"


def test_a_mean_pools_no_runs_of_different_lengths():
    rows = [make_row(seed=seed, steps=25_000_000 - seed, mean=seed) for seed in range(3)]
    longer = make_row(seed=0, steps=50_000_000, mean=9)
    shorter = [make_row(seed=seed, steps=1_000_000, mean=1) for seed in (3, 4)]
    cell = make_table([*rows, longer, *shorter]).cell(Method("ppo"), "maze", "test")
    assert [entry.row.mean_return for entry in cell.entries] == [
        0,
        1,
        2,
    ]  # a run that was trained on is there before it
    cell = make_table([longer, *shorter[:1]]).cell(Method("ppo"), "maze", "test")
    assert [entry.row.mean_return for entry in cell.entries] == [9]  # of as many runs the longer training


def test_a_gap_is_of_one_run_after_the_same_steps():
    tested = [make_row(seed=seed, mean=4) for seed in (0, 1)]
    other_length = [make_row(seed=0, split="train", mean=10, steps=50_000_000)]
    other_run = [make_row(seed=2, split="train", mean=10)]
    assert make_table([*tested, *other_length, *other_run]).gap(Method("ppo"), "maze") is None
    alike = make_row(seed=1, split="train", mean=8)
    assert make_table([*tested, *other_length, *other_run, alike]).gap(Method("ppo"), "maze").value == 0.5


def test_more_episodes_count_before_later_ones():
    rows = [make_row(mean=mean, episodes=episodes) for mean, episodes in ((1, 500), (2, 2000), (3, 2000), (4, 500))]
    assert make_table(rows).cell(Method("ppo"), "maze", "test").estimate.value == 3
    more_steps = make_row(mean=5, episodes=500, steps=26_000_000)
    assert make_table([*rows, more_steps]).cell(Method("ppo"), "maze", "test").estimate.value == 5


def test_an_evaluation_comes_before_a_curve_s_last_point():
    nan = float("nan")
    rows = [make_row(mean=5), make_row(mean=9, ci_low=nan, ci_high=nan, steps=26_000_000)]
    assert make_table(rows).cell(Method("ppo"), "maze", "test").estimate.value == 5
    assert make_table(rows[1:]).cell(Method("ppo"), "maze", "test").estimate.value == 9


def test_each_leader_is_a_run():
    rows = [make_row("expgen", agent="expgen", mean=8), make_row("expgen", agent="expgen leader=1", mean=6)]
    cell = make_table(rows).cell(Method("expgen"), "maze", "test")
    assert cell.estimate.value == 7 and cell.over == "leaders"


def test_leaders_are_told_from_runs():
    one = [make_row("expgen", agent=f"expgen leader={leader}") for leader in range(3)]
    table = make_table([*one, make_row(seed=0), make_row(seed=1)])
    assert table.over_leaders(table.methods(), ["maze", "heist"]) == {Method("expgen"): ["maze"]}
    both = make_table([*one, make_row("expgen", game="heist", agent="expgen")])
    assert both.over_leaders(both.methods(), ["maze", "heist"]) == {Method("expgen"): ["maze"]}
    other_seeds = [make_row("expgen", agent="expgen", seed=seed) for seed in range(3)]
    assert make_table(other_seeds).cell(Method("expgen"), "maze", "test").over == "runs"


def test_one_run_keeps_its_interval_over_levels():
    cell = make_table([make_row(mean=5, ci_low=4.5, ci_high=5.4)]).cell(Method("ppo"), "maze", "test")
    assert cell.estimate == (5, 4.5, 5.4) and cell.over == "levels"


def test_all_unseen_levels_come_before_a_few():
    rows = [make_row(mean=5), make_row(mean=9, levels="201:200")]
    assert make_table(rows).cell(Method("ppo"), "maze", "test").estimate.value == 5
    assert make_table(rows[1:]).cell(Method("ppo"), "maze", "test").estimate.value == 9


def test_normalised_matrix_and_gap():
    rows = [
        make_row(seed=seed, game=game, mean=mean + shift, split=split)
        for split, shift in (("test", 0), ("train", 2))
        for seed, game, mean in ((0, "maze", 7.5), (1, "maze", 5), (0, "heist", 3.5))
    ]
    table = make_table(rows)
    method = Method("ppo")
    np.testing.assert_allclose(table.matrix([method], ["maze"])[method], [[0.5], [0.0]])
    assert table.matrix([method], ["maze", "heist"])[method].shape == (1, 2)  # as many runs as every game has
    assert table.gap(method, "maze").value == pytest.approx(2 / 8.25)
    assert table.gap(method, "coinrun") is None


def test_rliable_s_constants_by_choice():
    rows = [make_row(game="jumper", mean=5.5)]
    for constants, expected in (("easy", 2.5 / 7), ("rliable", 0.5)):
        table = make_table(rows, constants=constants)
        assert table.matrix([Method("ppo")], ["jumper"])[Method("ppo")] == pytest.approx(expected)


def test_comparisons_take_the_games_that_most_have():
    on = {"ppo": ("maze", "heist"), "expgen": ("maze", "heist"), "leep": ("maze",), "random": ("minimaze",)}
    table = make_table([make_row(algorithm, game) for algorithm, games in on.items() for game in games])
    methods, games = table.comparable(table.methods())
    assert [method.algorithm for method in methods] == ["ppo", "expgen"] and games == ["heist", "maze"]
