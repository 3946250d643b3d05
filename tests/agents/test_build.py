"""Who plays for an agent, by its description alone; loading weights is tested with runs."""

from dataclasses import replace

import pytest

from expgen.agents.build import build_agent, consensus_of, policy_names, training_settings
from expgen.agents.description import AgentDescription
from expgen.errors import InputError
from tests.agents.test_description import AGENT, policy

TEN = replace(AGENT, members=tuple(policy(f"a/checkpoints/member{index}") for index in range(10)))


def with_quorum(min_agree: int) -> AgentDescription:
    assert TEN.consensus is not None
    return replace(TEN, consensus=replace(TEN.consensus, min_agree=min_agree))


@pytest.mark.parametrize(("size", "quorum"), [(4, 3), (8, 5), (10, 6)])
def test_a_part_of_an_ensemble_keeps_the_share_of_its_quorum(size: int, quorum: int) -> None:
    """Six of ten is 5/9 of the leader's nine fellows; of three fellows that is 1.7, of seven 3.9."""
    assert consensus_of(with_quorum(6), {"ensemble_size": size}).min_agree == quorum
    assert consensus_of(with_quorum(6), {"ensemble_size": size, "min_agree": 1}).min_agree == 1


def test_those_play_who_are_asked() -> None:
    everyone = [f"member{index}" for index in range(10)]
    few = ["member0", "member1", "explorer"]
    for changes, players in (({"ensemble_size": 2}, few), ({"fallback": "random"}, everyone)):
        assert policy_names(TEN, consensus_of(TEN, changes)) == players


def test_settings_of_the_vote_are_refused_where_one_policy_plays() -> None:
    with pytest.raises(InputError, match="--alpha is a setting of ensembles and cannot be used with one policy"):
        build_agent(TEN, "member3", changes={"alpha": 0.2})


def test_a_policy_that_the_agent_does_not_have_is_named() -> None:
    with pytest.raises(InputError, match="--learner is 'member10'; accepted: member0, member1"):
        build_agent(TEN, "member10")


def test_a_score_tells_how_its_policies_were_trained_otherwise_than_in_the_paper() -> None:
    plain = policy("a/checkpoints/member0")
    impoola = replace(plain, network=replace(plain.network, encoder="impoola", width=2), mirror=True)
    small = replace(plain, network=replace(plain.network, encoder="conv"))
    assert training_settings([plain, small]) == {}
    assert training_settings([plain, impoola]) == {"encoder": "impoola", "width": 2, "mirror": True}
