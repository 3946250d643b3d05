"""Policies and settings of an agent from its description; loading of weights is tested in tests/runs."""

from dataclasses import replace

import pytest

from expgen.agents.build import build_agent, consensus_of, policy_names, training_settings
from expgen.agents.consensus import ConsensusConfig
from expgen.agents.description import AgentDescription
from expgen.errors import InputError
from expgen.reward.source import GameRewardConfig
from tests.agents.test_description import AGENT, policy

TEN = replace(AGENT, members=tuple(policy(f"a/checkpoints/member{index}") for index in range(10)))


def with_quorum(min_agree: int) -> AgentDescription:
    assert TEN.consensus is not None
    return replace(TEN, consensus=replace(TEN.consensus, min_agree=min_agree))


@pytest.mark.parametrize(("size", "quorum"), [(4, 3), (8, 5), (10, 6)])
def test_smaller_ensemble_size_scales_the_quorum(size: int, quorum: int) -> None:
    """Six of ten is 5/9 of the nine other members; of three others that is 1.7, of seven 3.9."""
    assert consensus_of(with_quorum(6), {"ensemble_size": size}).min_agree == quorum
    assert consensus_of(with_quorum(6), {"ensemble_size": size, "min_agree": 1}).min_agree == 1


def test_policy_names_follow_ensemble_size_and_fallback() -> None:
    all_members = [f"member{index}" for index in range(10)]
    few = ["member0", "member1", "explorer"]
    for changes, players in (({"ensemble_size": 2}, few), ({"fallback": "random"}, all_members)):
        assert policy_names(TEN, consensus_of(TEN, changes)) == players


@pytest.mark.parametrize(("vote", "num_explorers"), [("turns", 1), ("mean", 0)])
def test_fallback_of_the_file_is_ignored_without_a_vote(vote: str, num_explorers: int) -> None:
    names = policy_names(TEN, ConsensusConfig(vote=vote, fallback="random"))  # type: ignore[arg-type]
    assert names == [f"member{index}" for index in range(10)] + ["explorer"] * num_explorers


@pytest.mark.parametrize("vote", ["leader", "turns", "mean"])
def test_explorers_without_members_play_whatever_the_fallback_of_the_file(vote: str) -> None:
    alone = replace(TEN, members=())
    assert policy_names(alone, ConsensusConfig(vote=vote, fallback="none")) == ["explorer"]  # type: ignore[arg-type]


def test_vote_settings_are_rejected_for_a_single_policy() -> None:
    with pytest.raises(InputError, match="--alpha is a setting of ensembles and cannot be used with one policy"):
        build_agent(TEN, "member3", changes={"alpha": 0.2})


def test_unknown_learner_is_rejected() -> None:
    with pytest.raises(InputError, match="--learner is 'member10'; accepted: member0, member1"):
        build_agent(TEN, "member10")


def test_training_settings_list_differences_from_the_paper() -> None:
    plain = policy("a/checkpoints/member0")
    impoola = replace(plain, network=replace(plain.network, encoder="impoola", width=2), mirror=True)
    small = replace(plain, network=replace(plain.network, encoder="conv"))
    assert training_settings([plain, small]) == {}
    assert training_settings([plain, impoola]) == {"encoder": "impoola", "width": 2, "mirror": True}
    assert training_settings([plain, replace(plain, level_replay=True)]) == {"level_replay": True}
    careful = replace(plain, reward=GameRewardConfig(death_cost=5.0))
    assert training_settings([plain, careful]) == {"death_cost": "0+5"}
    usual, drac = policy("a", "idaac"), policy("a", "ucb-drac")
    cropped = replace(usual, algorithm=replace(usual.algorithm, augmentation="crop"))
    cut = replace(drac, algorithm=replace(drac.algorithm, augmentation="cutout"))
    assert training_settings([plain, usual, drac]) == {}
    assert training_settings([plain, usual, cropped]) == {"augmentation": "crop"}
    assert training_settings([cut, cropped]) == {"augmentation": "crop+cutout"}
