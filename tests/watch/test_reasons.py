"""Reasons for the inspector match the agent's decisions."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from expgen.agents.agent import PolicyAgent, TurnsAgent, UniformAgent
from expgen.agents.consensus import ConsensusAgent, ConsensusConfig
from expgen.agents.mean import MeanAgent
from expgen.agents.vote import MINIMAZE, Agreement
from expgen.exploration.wall_follower import minimaze_follower
from expgen.fast.fast_networks import for_play
from expgen.networks.actor_critic import Policy
from expgen.watch.reasons import EnsembleInfo, ensemble_info, reason_of
from expgen.watch.record import Recording
from tests.watch.conftest import SPEC, make_network


def test_ensemble_acts_exactly_when_the_quorum_is_reached(mixed: Recording) -> None:
    assert mixed.ensemble == EnsembleInfo(members=4, leader=0, quorum=3)
    lasts = 0
    for step in mixed.steps:
        why = step.reason
        assert bool(why.votes) == (lasts == 0)  # no vote during a stretch
        if why.votes:
            same = [vote == why.votes[0] and vote > 0 for vote in why.votes[1:]]  # a no-op agrees with nothing
            assert why.agrees == (True, *same)
            assert sum(why.agrees) == Agreement(5, MINIMAZE).count(np.array(why.votes)[:, None], 0)[0]
            assert (why.who == "ensemble") == (sum(why.agrees) >= 3)
            assert sum(why.probability) == pytest.approx(1)
        if why.who == "ensemble":
            assert step.action == why.votes[0]
        assert sum(why.explorer) == pytest.approx(1)  # it sees every frame
        lasts = why.lasts


def test_majority_executes_the_action_of_the_named_member(outvoted: Recording) -> None:
    assert outvoted.ensemble == EnsembleInfo(members=4, leader=0, quorum=2, vote="majority")
    for step in outvoted.steps:
        why = step.reason
        assert (why.member is None) == (not why.votes)
        if why.member is not None:
            own = why.votes[why.member]
            assert why.agrees == tuple(i == why.member or vote == own > 0 for i, vote in enumerate(why.votes))
            assert sum(why.agrees) == max(why.votes.count(vote) if vote else 1 for vote in why.votes)
            assert (why.who == "ensemble") == (sum(why.agrees) >= 2 and not why.is_set_aside)
            if why.who == "ensemble":
                assert step.action == own


def test_consensus_is_set_aside_exactly_on_frames_the_ensemble_has_acted_on(outvoted: Recording) -> None:
    acted = set()
    for step, frame in zip(outvoted.steps, outvoted.seen.index, strict=True):
        why = step.reason
        assert why.is_set_aside == (sum(why.agrees) >= 2 and frame in acted)
        if why.who == "ensemble":
            acted.add(frame)


def test_recording_evaluates_every_member(record: Callable[..., Recording]) -> None:
    """Without a recording, convolutional members whose vote cannot matter are skipped."""
    members = [for_play(make_network(index, encoder="conv")) for index in range(5)]
    agent = ConsensusAgent(members, None, SPEC, ConsensusConfig(fallback="random"))
    obs, first = np.zeros((16, *SPEC.obs_shape), dtype=np.uint8), np.ones(16, dtype=bool)
    agent.act(obs, first)
    assert agent.decision is not None and (agent.decision.votes == -1).any()
    reasons = [step.reason for step in record(agent).steps]
    assert {len(why.votes) for why in reasons} == {0, 5} and min(min(why.votes, default=0) for why in reasons) == 0
    assert all(sum(why.probability) == pytest.approx(1) for why in reasons if why.votes)


def test_mean_probability_of_members_explains_their_votes(
    record: Callable[..., Recording], consensus: Callable[..., Any]
) -> None:
    votes: Counter[int] = Counter()
    expected = np.zeros(5)
    for seed in range(8):
        for step in record(consensus(seed=seed, fallback="none"), level=seed).steps:
            votes.update(step.reason.votes)
            expected += 4 * np.array(step.reason.probability)
    drawn = np.array([votes[action] for action in range(5)])
    assert np.abs(drawn - expected).max() < 4 * np.sqrt(expected.sum()) / 2


def test_fallback_none_is_shown_as_leader(record: Callable[..., Recording], consensus: Callable[..., Any]) -> None:
    steps = record(consensus(min_agree=2, fallback="none")).steps
    assert {step.reason.who for step in steps} == {"ensemble", "leader"}
    assert all(step.action == step.reason.votes[0] and not step.reason.explorer for step in steps)


def test_random_fallback_is_shown_as_random(record: Callable[..., Recording], consensus: Callable[..., Any]) -> None:
    assert {step.reason.who for step in record(consensus(min_agree=5, fallback="random")).steps} == {"random"}


def test_single_policy_has_probabilities_and_value(record: Callable[..., Recording], policy: Policy) -> None:
    agent = PolicyAgent(policy, seed=3)
    steps = record(agent).steps
    assert ensemble_info(agent) == EnsembleInfo()
    for step in steps:
        assert step.reason.who == "policy" and step.reason.value is not None and len(step.reason.probability) == 5
    assert (
        np.mean([step.reason.probability[step.action] for step in steps]) > 0.2
    )  # more than the 0.2 of a uniform policy


def test_explorers_that_take_turns_are_numbered(record: Callable[..., Recording]) -> None:
    agent = TurnsAgent([make_network(index, memory=True) for index in range(3)], turn=4, seed=3)
    reasons = [step.reason for step in record(agent).steps]
    assert ensemble_info(agent) == EnsembleInfo(explorers=3)
    assert {why.who for why in reasons} == {"explorer"} and all(sum(why.probability) > 0.99 for why in reasons)
    assert [why.turn for why in reasons] == [(reasons[0].turn - 1 + t // 4) % 3 + 1 for t in range(len(reasons))]


def test_members_and_explorers_that_take_turns_are_shown_as_policies(record: Callable[..., Recording]) -> None:
    agent = TurnsAgent([make_network(index, memory=index == 1) for index in range(2)], turn=4, seed=3)
    steps = record(agent).steps
    assert {step.reason.who for step in steps} == {"policy"}
    assert [step.reason.turn for step in steps[:8]] in ([1] * 4 + [2] * 4, [2] * 4 + [1] * 4)
    assert all(sum(step.reason.probability) > 0.99 for step in steps)


def test_mean_of_policies_has_one_probability_and_value(record: Callable[..., Recording]) -> None:
    policies = [make_network(index, memory=index == 1) for index in range(3)]
    agent = MeanAgent(policies, seed=3)
    reasons = [step.reason for step in record(agent).steps]
    assert ensemble_info(agent) == EnsembleInfo(averaged=3)
    assert {why.who for why in reasons} == {"policy"} and all(why.value is not None for why in reasons)
    assert all(sum(why.probability) == pytest.approx(1) and not why.votes for why in reasons)


@pytest.mark.parametrize(("agent", "who"), [(UniformAgent(5), "random"), (minimaze_follower(), "rule")])
def test_agents_without_policy_have_no_probabilities(agent: Any, who: str, record: Callable[..., Recording]) -> None:
    assert {step.reason for step in record(agent).steps} == {reason_of(agent)}
    assert reason_of(agent).who == who and reason_of(agent).votes == ()
