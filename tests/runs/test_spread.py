"""spread and cost_of: assigning learners to worker processes."""

from expgen.runs.make_config import make_config
from expgen.runs.plan import cost_of, plans_of, spread


def test_spread_assigns_expensive_learners_first_to_the_least_loaded_worker() -> None:
    costs = {"a": 3.0, "b": 5.0, "c": 4.0, "d": 3.0, "e": 1.0}  # b 5 | c 4 | c + a 7 | b + d 8 | c + a + e 8
    assert spread(costs, 2) == [["b", "d"], ["c", "a", "e"]]
    assert spread(costs, 1) == [["b", "c", "a", "d", "e"]]
    assert spread({"a": 1.0, "b": 1.0}, 4) == [["a"], ["b"]]


def test_spread_ten_members_and_an_explorer_over_four_workers() -> None:
    config = make_config("minimaze", "expgen", members=10, steps=2**20, explorer_steps=2**20)
    costs = {plan.name: cost_of(plan, 0) for plan in plans_of(config)}
    shares = spread(costs, 4)
    assert shares[0][0] == "explorer" and [len(share) for share in shares] == [2, 3, 3, 3]


def test_cost_counts_only_remaining_steps() -> None:
    plan, *_, explorer = plans_of(make_config("minimaze", "expgen", envs=8, rollout_steps=16, steps=1280))
    assert (cost_of(plan, 0), cost_of(plan, 1000), cost_of(plan, 1280), cost_of(plan, 9999)) == (1280, 280, 0, 0)
    assert explorer.policy.network.memory != "none"
    assert cost_of(explorer, explorer.steps - 100) == 200
