"""Members that are not evaluated: no decision may depend on their votes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from expgen.agents.consensus import ConsensusAgent, ConsensusConfig
from expgen.agents.ensemble import Ensemble, Poll
from expgen.agents.vote import Agreement, Panel, VoteRule, classes_of, full_panel
from expgen.envs.make import make_env
from expgen.envs.vec_env import EnvSpec
from expgen.fast.fast_networks import for_play
from expgen.networks.actor_critic import NetworkConfig, Policy, PolicyOutput, make_policy
from expgen.networks.cached_encoder import CachedEncoder

MAZES = {"max_cells": 3, "time_limit": 25}
SPEC = EnvSpec("minimaze", (7, 7, 3), "uint8", 5)
NUM_MEMBERS = 6


class TablePolicy(nn.Module):
    """A policy with a table of logits, which are bit-equal for every batch size."""

    state_size = 0

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.table = nn.Parameter(table)  # [K, A]

    def forward(self, obs: Tensor, first: Tensor, state: Tensor) -> PolicyOutput:
        weight = torch.arange(1, obs[0, 0].numel() + 1)
        row = (obs.flatten(2).long() * weight).sum(2) % len(self.table)  # [T, N]
        return PolicyOutput(self.table[row], self.table[row, 0], state)


def tables(num: int = NUM_MEMBERS) -> list[Any]:
    common = torch.randn(50, 5, generator=torch.Generator().manual_seed(0)) * 2
    return [
        TablePolicy(common + torch.randn(50, 5, generator=torch.Generator().manual_seed(j))) for j in range(1, num)
    ] + [TablePolicy(common)]


class AnyPanels:
    """Random voters, leader and quorum in every environment and step."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(3)

    def __call__(self, env: np.ndarray) -> Panel:
        is_voter = self.random.random((NUM_MEMBERS, len(env))) < 0.6
        leader = self.random.integers(NUM_MEMBERS, size=len(env))
        is_voter[leader, np.arange(len(env))] = True
        return Panel(is_voter, leader, self.random.integers(1, NUM_MEMBERS + 1, size=len(env)))


def explorer() -> Policy:
    network = NetworkConfig(features=16, memory="gru")
    policy = make_policy(SPEC, network, torch.Generator().manual_seed(9), torch.device("cpu"))
    policy.policy_head.weight.data *= 60
    return policy


def play(agent: ConsensusAgent, steps: int = 60, num_envs: int = 6) -> list[tuple[np.ndarray, ...]]:
    """Return action, candidate, agreed, set aside, actor, remaining steps and votes of every step.

    The candidate is omitted where the quorum is not reached.
    """
    env = make_env("minimaze", levels="50", num_envs=num_envs, seed=1, **MAZES)
    rows = []
    for _ in range(steps):
        seen = env.observe()
        action = agent.act(seen.obs, seen.first)
        assert agent.decision is not None
        decision = agent.decision
        candidate = np.where(decision.agreed, decision.candidate, -1)
        decided = (decision.agreed, decision.set_aside, decision.actor, decision.explore_steps)
        rows.append((action, candidate, *decided, decision.votes))
        env.act(action)
    return rows


def both(config: ConsensusConfig, panels: type[AnyPanels] | None = None) -> list[list[tuple[np.ndarray, ...]]]:
    """Return an agent that stops voting early and one that evaluates all members."""
    played = []
    for is_complete in (False, True):
        own = panels() if panels else None
        agent = ConsensusAgent(tables(), explorer(), SPEC, config, 4, own)
        agent.poll.is_complete = is_complete
        played.append(play(agent))
    return played


@pytest.mark.parametrize(("agreement", "no_op_is_up"), [("direction", False), ("direction", True), ("action", False)])
@pytest.mark.parametrize("leader", [0, 3])
@pytest.mark.parametrize("quorum", range(1, NUM_MEMBERS + 2))
@pytest.mark.parametrize(("vote", "once"), [("leader", False), ("majority", True)])
def test_early_decision_equals_full_vote(
    quorum: int, leader: int, no_op_is_up: bool, agreement: Any, vote: Any, once: bool
) -> None:
    config = ConsensusConfig(
        leader=leader, min_agree=quorum, agreement=agreement, no_op_is_up=no_op_is_up, vote=vote, once=once
    )
    few, every = both(config)
    for one, other in zip(few, every, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one[:-1], other[:-1], strict=True))
        asked = one[-1] >= 0
        assert np.array_equal(one[-1][asked], other[-1][asked])
    num_few, num_every = (sum(int((row[-1] >= 0).sum()) for row in rows) for rows in (few, every))
    assert num_few < num_every


@pytest.mark.parametrize("fallback", ["explorer", "random", "none"])
@pytest.mark.parametrize("vote", ["leader", "majority"])
def test_early_decision_equals_full_vote_in_random_panels(fallback: Any, vote: Any) -> None:
    few, every = both(ConsensusConfig(fallback=fallback, vote=vote), AnyPanels)
    for one, other in zip(few, every, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one[:-1], other[:-1], strict=True))
    assert {bool(value) for row in every for value in row[2]} == {True, False}


UP, LEFT, STAY = 3, 1, 0  # of minimaze


@pytest.mark.parametrize(
    ("actions", "quorum", "asked"),
    [
        ([UP] * 10, 6, 6),
        ([UP, *[LEFT] * 9], 6, 6),  # five disagree, so at most five agree
        ([UP, UP, UP, UP, UP, LEFT, LEFT, LEFT, LEFT, UP], 6, 10),
        ([UP, UP, LEFT, UP, LEFT, UP, UP, UP, UP, UP], 6, 8),
        ([STAY] * 10, 6, 1),  # a no-op agrees with nothing
        ([UP] * 10, 1, 1),
        ([UP] * 10, 11, 1),
        ([UP, LEFT, *[UP] * 8], 10, 2),
    ],
)
def test_poll_stops_when_the_leader_vote_is_decided(actions: Sequence[int], quorum: int, asked: int) -> None:
    check_asked(VoteRule(Agreement(5, classes_of(SPEC)), "leader"), actions, quorum, asked)


@pytest.mark.parametrize(
    ("actions", "quorum", "asked"),
    [
        ([UP] * 10, 6, 6),
        ([UP, *[LEFT] * 9], 6, 7),  # six for left
        ([STAY] * 10, 6, 5),  # no-ops agree with nothing, and the last five are too few
        ([UP] * 10, 2, 5),  # the last five can only tie, and the leader breaks ties
        ([LEFT, *[UP] * 9], 2, 7),  # after six votes the leader's action, left, can still tie with up
        ([LEFT, STAY, *[UP] * 8], 2, 7),
        ([UP, LEFT, UP, LEFT, UP, LEFT, UP, LEFT, UP, UP], 5, 9),
        ([UP, LEFT, UP, LEFT, UP, LEFT, LEFT, UP, LEFT, UP], 5, 10),  # a tie of five: the leader's action
        ([UP] * 10, 11, 1),
        ([UP, LEFT, *[UP] * 8], 10, 2),
    ],
)
def test_poll_stops_when_the_majority_cannot_be_overtaken(actions: Sequence[int], quorum: int, asked: int) -> None:
    check_asked(VoteRule(Agreement(5, classes_of(SPEC)), "majority"), actions, quorum, asked)


def check_asked(rule: VoteRule, actions: Sequence[int], quorum: int, asked: int) -> None:
    """Check that of members with one certain action each, exactly the first `asked` are evaluated."""
    members: list[Any] = [TablePolicy(1000 * torch.eye(5)[action].unsqueeze(0)) for action in actions]
    poll = Poll(Ensemble(members), rule, list(range(10)), 5)
    obs, number = np.zeros((2, *SPEC.obs_shape), dtype=np.uint8), np.arange(2)
    votes = poll(obs, number, number, full_panel(10, 0, quorum, number))
    wanted = np.where(np.arange(10) < asked, actions, -1)
    assert votes.T.tolist() == [wanted.tolist()] * 2
    assert np.array_equal(np.isnan(poll.logits), np.broadcast_to(votes[..., None] < 0, poll.logits.shape))


def test_early_decision_with_convolutions_differs_only_by_rounding() -> None:
    """With real networks smaller batches change the last digits, by far less than any difference that matters."""
    network = NetworkConfig(encoder="conv", features=16)
    members = [make_policy(SPEC, network, torch.Generator().manual_seed(j), torch.device("cpu")) for j in range(10)]
    for member in members:
        member.policy_head.weight.data *= 60
    played = [for_play(member) for member in members]
    assert all(type(own.encode) is CachedEncoder for own in played)
    assert all(own.encode == own.encoder.forward for own in members)
    agents = [ConsensusAgent(own, None, SPEC, ConsensusConfig(fallback="random")) for own in (played, members)]
    agents[1].ask_all_members()
    assert [agent.poll.is_complete for agent in agents] == [False, True]
    env = make_env("minimaze", levels="50", num_envs=8, seed=1, **MAZES)
    asked = total = 0
    for _ in range(40):
        seen = env.observe()
        few, every = (agent.act(seen.obs, seen.first) for agent in agents)
        is_known = ~np.isnan(agents[0].poll.logits)
        np.testing.assert_allclose(agents[0].poll.logits[is_known], agents[1].poll.logits[is_known], atol=1e-4)
        assert np.array_equal(few, every)
        asked, total = asked + is_known.sum(), total + is_known.size
        env.act(every)
    assert 0.3 * total < asked < 0.9 * total
