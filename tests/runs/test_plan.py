"""Plans of a run's learners: members, their levels, and the explorer of an ensemble."""

from pathlib import Path
from typing import Any

import pytest

from expgen.errors import InputError
from expgen.rollout.level_replay import ReplayConfig
from expgen.runs.make_config import make_config, make_consensus
from expgen.runs.plan import first_plans, plans_of

EXPLORER_OF_THE_PAPER = {"maze": 0.9, "heist": 0.5, "jumper": 0.99}


def test_members_of_a_run_have_consecutive_seeds() -> None:
    plans = plans_of(make_config("procgen:maze", "ppo", members=3, seed=5))
    assert [(plan.name, plan.policy.algo, plan.policy.seed, plan.steps) for plan in plans] == [
        ("member0", "ppo", 5, 24_985_600),
        ("member1", "ppo", 6, 24_985_600),
        ("member2", "ppo", 7, 24_985_600),
    ]


@pytest.mark.parametrize("game", EXPLORER_OF_THE_PAPER)
def test_expgen_has_ten_members_and_an_explorer(game: str) -> None:
    plans = plans_of(make_config(f"procgen:{game}", "expgen"))
    assert [plan.policy.algo for plan in plans] == ["ppo"] * 10 + ["maxent"]
    member, explorer = plans[0].policy, plans[-1].policy
    assert plans[-1].name == "explorer" and explorer.network.memory == "gru" and member.network.memory == "none"
    assert (member.algorithm.gamma, explorer.algorithm.gamma) == (0.999, EXPLORER_OF_THE_PAPER[game])
    assert plans[-1].steps == 100_000_000 // 16384 * 16384
    alone = plans_of(make_config(f"procgen:{game}", "maxent"))[0].policy
    assert (explorer.network, explorer.algorithm, explorer.reward) == (alone.network, alone.algorithm, alone.reward)


def test_expgen_idaac_has_idaac_members_and_the_same_explorer() -> None:
    plans = plans_of(make_config("procgen:bigfish", "expgen-idaac"))
    assert [plan.policy.algo for plan in plans] == ["idaac"] * 10 + ["maxent"]
    alone = [plans_of(make_config("procgen:bigfish", algo))[0] for algo in ("idaac", "maxent")]
    for mine, theirs in zip((plans[0], plans[-1]), alone):
        assert (mine.envs, mine.rollout_steps, mine.steps) == (theirs.envs, theirs.rollout_steps, theirs.steps)
        settings = [(each.policy.network, each.policy.algorithm, each.policy.reward) for each in (mine, theirs)]
        assert settings[0] == settings[1]
    assert (plans[0].envs, plans[0].rollout_steps) == (64, 256)
    assert plans_of(make_config(algo="expgen-idaac", envs=16))[-1].envs == 16  # as many as a member has


def test_members_replay_levels_and_explorers_do_not() -> None:
    plans = plans_of(make_config(algo="expgen-idaac", members=2, level_replay=True, rank_temperature=0.5))
    assert [plan.replay for plan in plans] == [ReplayConfig(rank_temperature=0.5)] * 2 + [None]
    assert all(plan.replay is None for plan in plans_of(make_config(algo="expgen-idaac")))


@pytest.mark.parametrize(("algo", "last"), [("ppo", "ppo"), ("expgen", "maxent")])
def test_first_plans_end_with_the_explorer_if_there_are_several(algo: str, last: str) -> None:
    config = make_config(algo=algo)
    assert [plan.policy.algo for plan in first_plans(config, 1)] == ["ppo"]
    assert [plan.policy.algo for plan in first_plans(config, 3)] == ["ppo", "ppo", last]


def test_explorer_settings_have_a_prefix() -> None:
    config = make_config(algo="expgen", gamma=0.98, explorer_gamma=0.7, explorer_steps=10**6, explorer_neighbor_rank=3)
    member, explorer = plans_of(config)[0], plans_of(config)[-1]
    assert (member.policy.algorithm.gamma, explorer.policy.algorithm.gamma) == (0.98, 0.7)
    assert explorer.policy.reward.neighbor_rank == 3
    assert explorer.steps == 10**6 // 2048 * 2048 and explorer.rollout_steps == 32
    with pytest.raises(InputError, match="'explorer_colour' is unknown to --algo expgen"):
        make_config(algo="expgen", explorer_colour=1)
    with pytest.raises(InputError, match="'explorer_gamma' is unknown to --algo ppo"):
        make_config(algo="ppo", explorer_gamma=0.5)
    with pytest.raises(InputError, match="--explorer-steps is 7; accepted: 2048"):
        make_config(algo="expgen", explorer_steps=7)


def test_quorum_is_the_papers_or_a_majority() -> None:
    for game, quorum in (("maze", 6), ("heist", 8), ("jumper", 4), ("miner", 2)):
        consensus = make_consensus(make_config(f"procgen:{game}", "expgen"))
        assert consensus is not None and consensus.min_agree == quorum
    for members, quorum in ((4, 3), (5, 3), (10, 6)):  # the same share of the other members
        consensus = make_consensus(make_config("procgen:maze", "expgen", members=members))
        assert consensus is not None and consensus.min_agree == quorum
    given = make_consensus(make_config("procgen:maze", "expgen", members=4), settings={"min_agree": 6})
    assert given is not None and given.min_agree == 6  # an unreachable quorum is allowed: the explorer always acts
    elsewhere = make_consensus(make_config(algo="expgen", preset="paper"), "paper")
    assert elsewhere is not None and elsewhere.quorum(10) == 6


def test_bootstrap_leaves_out_about_a_third_of_the_levels() -> None:
    plans = plans_of(make_config(algo="expgen", member_levels="bootstrap", levels="1000:200", members=8))
    sets = [set(plan.policy.levels.seeds or ()) for plan in plans[:-1]]
    assert all(levels <= set(range(1000, 1200)) and 100 <= len(levels) <= 150 for levels in sets)
    assert len({frozenset(levels) for levels in sets}) == 8
    assert len(plans[-1].policy.levels) == 200  # explorers train on all levels
    assert [set(plan.policy.levels.seeds or ()) for plan in plans_of(make_config(algo="ppo", levels="1000:200"))] == [
        set(range(1000, 1200))
    ]


def test_population_resumes_bit_equal_and_its_ensemble_is_scored(small: Any, equal: Any, tmp_path: Path) -> None:
    changes = {"algo": "expgen", "members": 2, "eval_every": 2 * small.update_steps}
    changes |= {**small.explorer, "explorer_steps": 3 * small.update_steps}
    small.train(tmp_path / "whole", 2, **changes)
    stop = iter([False, False, False, *[True] * 20])
    small.train(tmp_path / "cut", 2, should_stop=stop.__next__, resume=True, **changes)
    assert small.train(tmp_path / "cut", 2, resume=True, **changes).is_complete
    for learner in ("member0", "member1", "explorer"):
        assert equal(small.state(tmp_path / "whole", learner), small.state(tmp_path / "cut", learner))
    rows = {run: (tmp_path / run / "scores.csv").read_text().splitlines() for run in ("whole", "cut")}
    assert sorted(rows["whole"]) == sorted(rows["cut"]) and len(rows["whole"]) == 1 + 2 * 5
    assert {line.split(",")[0] for line in rows["whole"][1:]} == {"ppo", "maxent", "expgen"}
