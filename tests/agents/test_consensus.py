"""Algorithm 1: invariants, a slow reference, and every choice that the paper leaves open."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from expgen.agents.agent import Agent, PolicyAgent, UniformAgent
from expgen.agents.consensus import STRETCH_TABLE, ConsensusAgent, ConsensusConfig, stretch_length
from expgen.agents.decision import Actor, Decision
from expgen.agents.vote import classes_of
from expgen.envs.make import make_env
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.evaluation.evaluate import evaluate
from expgen.networks.actor_critic import NetworkConfig, Policy, PolicyOutput, make_policy
from expgen.random import MEMBERS, STRETCH, stream_seed, uniform_noise

MAZES = {"max_cells": 3, "time_limit": 25}
SPEC = EnvSpec("minimaze", (7, 7, 3), "uint8", 5)
NUM_MEMBERS = 5
DEFAULT = ConsensusConfig()


def make(seed: int, memory: str = "none") -> Policy:
    config = NetworkConfig(features=16, memory=memory)  # type: ignore[arg-type]
    policy = make_policy(SPEC, config, torch.Generator().manual_seed(seed), torch.device("cpu"))
    policy.policy_head.weight.data *= 60  # clear preferences
    return policy


MEMBERS_ALL = [make(seed) for seed in range(NUM_MEMBERS)]
EXPLORER = make(99, "gru")


def agent(config: ConsensusConfig, seed: int = 4) -> ConsensusAgent:
    return ConsensusAgent(MEMBERS_ALL, EXPLORER, SPEC, config, seed)


def play(player: Agent, steps: int = 150, num_envs: int = 6) -> np.ndarray:
    """Return the agent's actions `[T, N]` over many episodes of minimaze."""
    env = make_env("minimaze", levels="50", num_envs=num_envs, seed=1, **MAZES)
    actions = []
    for _ in range(steps):
        seen = env.observe()
        actions.append(player.act(seen.obs, seen.first))
        assert actions[-1].dtype == np.int32
        env.act(actions[-1])
    return np.stack(actions)


def decisions(player: ConsensusAgent, steps: int = 150, num_envs: int = 6) -> list[tuple[np.ndarray, Decision]]:
    """Return `first` and the decision of every step."""
    env = make_env("minimaze", levels="50", num_envs=num_envs, seed=1, **MAZES)
    rows = []
    for _ in range(steps):
        seen = env.observe()
        first = seen.first.copy()
        env.act(player.act(seen.obs, seen.first))
        assert player.decision is not None
        rows.append((first, player.decision))
    return rows


@pytest.mark.parametrize("leader", [0, 3])
@pytest.mark.parametrize("agreement", ["direction", "action"])
def test_quorum_of_one_plays_exactly_like_the_leader(leader: int, agreement: str):
    config = ConsensusConfig(leader=leader, min_agree=1, agreement=agreement)  # type: ignore[arg-type]
    assert np.array_equal(play(agent(config)), play(PolicyAgent(MEMBERS_ALL[leader], seed=4)))


def test_fallback_none_plays_exactly_like_the_leader():
    player = ConsensusAgent(MEMBERS_ALL, None, SPEC, ConsensusConfig(leader=2, fallback="none", min_agree=2), 4)
    assert np.array_equal(play(player), play(PolicyAgent(MEMBERS_ALL[2], seed=4)))
    total = player.tally
    assert 0 < total.agreed < total.votes == total.steps and total.explored == 0


def test_impossible_quorum_plays_exactly_like_the_explorer():
    player = agent(ConsensusConfig(min_agree=NUM_MEMBERS + 1))
    assert np.array_equal(play(player), play(PolicyAgent(EXPLORER, seed=4)))
    assert player.tally.explored_share == 1


def test_impossible_quorum_with_random_fallback_plays_exactly_like_uniform_agent():
    player = ConsensusAgent(MEMBERS_ALL, None, SPEC, ConsensusConfig(min_agree=NUM_MEMBERS + 1, fallback="random"), 4)
    assert np.array_equal(play(player), play(UniformAgent(5, seed=4)))


@pytest.mark.parametrize(
    ("fallback", "alpha", "vote", "once"),
    [
        ("explorer", 0.5, "leader", False),
        ("explorer", 0.2, "leader", False),
        ("random", 0.5, "leader", False),
        ("random", 0.2, "majority", False),
        ("explorer", 0.5, "leader", True),
        ("explorer", 0.5, "majority", True),
        ("random", 0.2, "majority", True),
    ],
)
def test_consensus_agent_matches_algorithm_1_step_by_step(fallback: str, alpha: float, vote: str, once: bool):
    """Slow reference: every member is an agent and evaluated at every step, one environment at a time."""
    config = ConsensusConfig(1, 1, 3, "direction", alpha, fallback=fallback, vote=vote, once=once)  # type: ignore[arg-type]
    fast = agent(config)
    voters = [PolicyAgent(m, 4, None if j == 1 else MEMBERS + j) for j, m in enumerate(MEMBERS_ALL)]
    other: Agent = PolicyAgent(EXPLORER, 4) if fallback == "explorer" else UniformAgent(5, 4)
    classes = classes_of(SPEC)
    assert classes is not None
    env = make_env("minimaze", levels="50", num_envs=4, seed=1, **MAZES)
    n = [0] * 4
    acted: list[set[bytes]] = [set() for _ in range(4)]
    seen_actors, seen_winners, num_set_aside = set(), set(), 0
    for _ in range(200):
        seen = env.observe()
        votes = [voter.act(seen.obs, seen.first) for voter in voters]
        rest = other.act(seen.obs, seen.first)
        got = fast.act(seen.obs, seen.first)
        clock = voters[0].clock
        uniform = uniform_noise(stream_seed(4, STRETCH), clock.episode, clock.step, 1)[:, 0]
        for i in range(4):
            if seen.first[i]:
                n[i] = 0
                acted[i].clear()
            agree = {}
            for member in (1,) if vote == "leader" else (1, 0, 2, 3, 4):
                same = [actions for actions in classes.values() if votes[member][i] in actions]
                agree[member] = sum(vote[i] in same[0] for vote in votes) if same else 1
            winner = max(agree, key=lambda member: agree[member])  # the first at a tie
            own, agrees = votes[winner][i], agree[winner] >= 3
            n[i] -= 1
            frame = seen.obs[i].tobytes()
            if once and agrees and frame in acted[i]:
                agrees = False
                num_set_aside += n[i] <= 0
            if not agrees and n[i] <= 0:
                n[i] = int(stretch_length(uniform[i : i + 1], config)[0])
            acts = agrees and n[i] <= 0
            seen_actors.add(acts)
            if acts:
                acted[i].add(frame)
                seen_winners.add(winner)
            assert got[i] == (own if acts else rest[i])
        env.act(got)
    assert seen_actors == {True, False} and (1 in seen_winners) and (len(seen_winners) > 1) == (vote == "majority")
    assert fast.tally.set_aside == num_set_aside and (num_set_aside > 0) == once


def test_explorer_memory_sees_every_frame():
    player, alone = agent(ConsensusConfig(min_agree=3)), PolicyAgent(EXPLORER, 4)
    env = make_env("minimaze", levels="50", num_envs=4, seed=1, **MAZES)
    for _ in range(60):
        seen = env.observe()
        action = player.act(seen.obs, seen.first)
        alone.act(seen.obs, seen.first)
        assert isinstance(player.fallback, PolicyAgent) and torch.equal(player.fallback.state, alone.state)
        env.act(action)
    assert 0 < player.tally.explored_share < 1


def test_stretch_lasts_the_drawn_number_of_steps_without_votes():
    player = agent(ConsensusConfig(min_agree=3))
    player.ask_all_members()
    drawn = []
    expected = np.zeros(6, dtype=np.int64)  # remaining steps of the stretch
    for first, decision in decisions(player, 400):
        expected[first] = 0
        is_asked = decision.votes[0] >= 0
        assert np.array_equal(is_asked, expected == 0)  # the start of an episode ends a stretch
        assert ((decision.votes >= 0) == is_asked).all()
        explores = decision.actor == Actor.EXPLORER
        assert np.array_equal(explores, ~is_asked | ~decision.agreed)
        begins = explores & is_asked
        drawn += (decision.explore_steps[begins] + 1).tolist()
        expected = np.where(begins, decision.explore_steps, np.maximum(expected - 1, 0))
        assert np.array_equal(expected, decision.explore_steps)
    assert set(drawn) >= {1, 2, 3, 10} and max(drawn) == 10


def test_new_episode_ends_the_stretch():
    player = agent(ConsensusConfig(min_agree=NUM_MEMBERS + 1, alpha=0.001))
    player.ask_all_members()
    obs, none = np.zeros((2, 7, 7, 3), dtype=np.uint8), np.zeros(2, dtype=bool)
    player.act(obs, ~none)
    assert player.explore_steps.min() > 5
    player.act(obs, none)
    assert player.decision is not None and (player.decision.votes == -1).all()
    player.act(obs, np.array([True, False]))
    assert (player.decision.votes[:, 0] >= 0).all() and (player.decision.votes[:, 1] == -1).all()


def test_members_are_not_evaluated_while_all_environments_explore(monkeypatch: pytest.MonkeyPatch):
    player = agent(ConsensusConfig(min_agree=NUM_MEMBERS + 1, alpha=0.001))
    obs = np.zeros((3, 7, 7, 3), dtype=np.uint8)
    player.act(obs, np.ones(3, dtype=bool))
    monkeypatch.setattr(player.ensemble, "logits_of", None)
    player.act(obs, np.zeros(3, dtype=bool))


@pytest.mark.parametrize("settings", [{}, {"fallback": "random"}, {"vote": "majority", "once": True}])
def test_consensus_episodes_do_not_depend_on_number_of_environments(settings: dict[str, Any]):
    results = []
    for num_envs, env_seed in ((4, 0), (16, 7)):
        env = make_env("minimaze", levels="100:10", num_envs=num_envs, seed=env_seed, **MAZES)
        player = agent(ConsensusConfig(min_agree=3, **settings))
        results.append((evaluate(player, env, episodes=40, seed=5).episodes, player.tally))
    assert results[0] == results[1]
    counts = results[0][1]
    assert counts.steps == sum(episode.length for episode in results[0][0])
    assert 0 < counts.explored < counts.steps


def sure_of(action: int, memory: str = "none") -> Policy:
    return opinionated([100.0 * (other == action) for other in range(5)], memory)


def test_leader_and_majority_vote_agree_for_unanimous_members():
    votes = []
    for vote in ("leader", "majority"):
        config = ConsensusConfig(leader=2, min_agree=3, vote=vote)  # type: ignore[arg-type]
        player = ConsensusAgent([sure_of(3)] * NUM_MEMBERS, EXPLORER, SPEC, config, 4)
        votes.append(play(player))
        assert player.tally.explored == 0
    assert np.array_equal(*votes) and (votes[0] == 3).all()


def test_majority_outvotes_a_single_leader():
    """Members with one certain action each: the leader goes up, the others left."""
    members = [sure_of(action) for action in (3, 1, 1, 1)]
    obs, first = np.zeros((2, 7, 7, 3), dtype=np.uint8), np.ones(2, dtype=bool)
    for vote, actor in (("leader", Actor.EXPLORER), ("majority", Actor.MEMBER)):
        player = ConsensusAgent(members, sure_of(2, "gru"), SPEC, ConsensusConfig(vote=vote))  # type: ignore[arg-type]
        action = player.act(obs, first)
        assert player.decision is not None and (player.decision.actor == actor).all()
        assert action.tolist() == ([1, 1] if vote == "majority" else [2, 2])
        assert player.decision.candidate.tolist() == ([1, 1] if vote == "majority" else [0, 0])


def test_fallback_none_uses_leader_when_majority_has_no_quorum():
    members = [sure_of(action) for action in (3, 1, 1, 4)]
    obs, first = np.zeros((1, 7, 7, 3), dtype=np.uint8), np.ones(1, dtype=bool)
    for quorum, expected in ((2, 1), (3, 3)):
        config = ConsensusConfig(min_agree=quorum, fallback="none", vote="majority")
        assert ConsensusAgent(members, None, SPEC, config).act(obs, first).tolist() == [expected]


@pytest.mark.parametrize("vote", ["leader", "majority"])
def test_once_has_no_effect_without_repeated_frames(vote: str):
    frames = np.random.default_rng(0).integers(256, size=(80, 4, 7, 7, 3), dtype=np.uint8)
    played = []
    for once in (False, True):
        player = agent(ConsensusConfig(min_agree=3, vote=vote, once=once))  # type: ignore[arg-type]
        played.append(np.stack([player.act(obs, np.full(4, t % 20 == 0)) for t, obs in enumerate(frames)]))
        assert 0 < player.tally.explored_share < 1
    assert np.array_equal(*played)


def test_once_leaves_repeated_frames_to_the_explorer():
    """All members choose the no-op, so that all frames of an episode are equal; agreement is by action."""
    config = ConsensusConfig(agreement="action", once=True)
    player = ConsensusAgent([sure_of(0)] * 3, sure_of(0, "gru"), SPEC, config)
    rows = decisions(player, steps=60, num_envs=2)
    assert sum(first.sum() for first, _ in rows) >= 4  # episodes
    for first, decision in rows:
        was_asked = decision.candidate >= 0
        assert np.array_equal(decision.actor == Actor.MEMBER, first)
        assert np.array_equal(decision.set_aside, was_asked & ~first) and np.array_equal(decision.agreed, was_asked)
    counts = player.tally
    assert 0 < counts.set_aside == counts.stretches < counts.explored


class ByBrightness(nn.Module):
    """A policy with one certain action on dark frames and another on bright frames."""

    state_size = 0

    def __init__(self, dark: int, bright: int) -> None:
        super().__init__()
        self.table = nn.Parameter(100 * torch.eye(5)[[dark, bright]])

    def forward(self, obs: Tensor, first: Tensor, state: Tensor) -> PolicyOutput:
        logits = self.table[(obs.flatten(2).float().mean(2) > 128).long()]  # [T, N, A]
        return PolicyOutput(logits, logits[..., 0], state)


def test_once_ignores_frames_on_which_only_the_explorer_acted():
    """The members disagree on the dark frame; the bright one appears during the stretch and is voted on after it."""
    members: list[Any] = [ByBrightness(dark, 4) for dark in (1, 2, 3)]
    player = ConsensusAgent(members, sure_of(0, "gru"), SPEC, ConsensusConfig(alpha=0.1, once=True))
    player.act(np.zeros((1, 7, 7, 3), dtype=np.uint8), np.array([True]))
    lasts = int(player.explore_steps[0])
    assert lasts > 1  # with this seed
    actors = []
    for _ in range(lasts + 2):
        player.act(np.full((1, 7, 7, 3), 255, dtype=np.uint8), np.array([False]))
        assert player.decision is not None
        actors.append(player.decision.actor[0])
    assert actors == [Actor.EXPLORER] * lasts + [Actor.MEMBER, Actor.EXPLORER]
    assert player.decision is not None and player.decision.set_aside[0]


UNIFORM = uniform_noise(3, np.arange(200_000), np.zeros(200_000, dtype=np.int64), 1)[:, 0]


def test_default_stretch_lengths_follow_the_table_of_the_papers_code():
    length = stretch_length(UNIFORM, DEFAULT)
    assert sum(STRETCH_TABLE) == pytest.approx(1)
    np.testing.assert_allclose(np.bincount(length, minlength=11)[1:] / len(length), STRETCH_TABLE, atol=0.004)
    assert length.mean() == pytest.approx(2.35, abs=0.02) and length.max() == 10
    edges = np.array([1e-12, 0.5499, 0.5501, 0.7999, 0.8001, 0.8251, 1.0])
    assert stretch_length(edges, DEFAULT).tolist() == [1, 1, 2, 2, 3, 4, 10]


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.8])
def test_geometric_stretch_lengths_start_at_one(alpha: float):
    length = stretch_length(UNIFORM, ConsensusConfig(alpha=alpha, stretch="geometric"))
    wanted = alpha * (1 - alpha) ** np.arange(8)
    np.testing.assert_allclose(np.bincount(length, minlength=9)[1:9] / len(length), wanted, atol=0.004)
    assert length.mean() == pytest.approx(1 / alpha, rel=0.02) and length.min() == 1


def test_alpha_one_gives_stretches_of_one_step():
    assert (stretch_length(UNIFORM[:1000], ConsensusConfig(alpha=1)) == 1).all()


def test_alpha_other_than_half_selects_geometric_stretches():
    assert not DEFAULT.is_geometric
    assert replace(DEFAULT, alpha=0.4).is_geometric
    assert replace(DEFAULT, stretch="geometric").is_geometric


def opinionated(logits: list[float], memory: str = "none") -> Policy:
    """A policy with the same logits for every observation."""
    policy = make(0, memory)
    policy.policy_head.weight.data.zero_()
    policy.policy_head.bias.data.copy_(torch.tensor(logits))
    return policy


@pytest.mark.parametrize("fallback", ["explorer", "random"])
def test_explorer_actions_are_independent_of_the_votes(fallback: str):
    """All agents share a seed, but the noise behind a rare vote of the leader must not affect the explorer."""
    num = 20_000
    config = ConsensusConfig(min_agree=3, fallback=fallback)  # type: ignore[arg-type]
    members = [opinionated([0, 3, 0, 0, 0])] * NUM_MEMBERS
    player = ConsensusAgent(members, opinionated([0, 0, 0, 0, 1], "gru"), SPEC, config)
    action = player.act(np.zeros((num, 7, 7, 3), dtype=np.uint8), np.ones(num, dtype=bool))
    assert player.decision is not None
    chosen = action[player.decision.actor != Actor.MEMBER]
    assert 2000 < len(chosen) < num / 2
    wanted = np.exp([0, 0, 0, 0, 1]) / (4 + np.e) if fallback == "explorer" else np.full(5, 0.2)
    np.testing.assert_allclose(np.bincount(chosen, minlength=5) / len(chosen), wanted, atol=0.03)


def test_members_with_equal_weights_vote_independently():
    player = ConsensusAgent([MEMBERS_ALL[0]] * 3, EXPLORER, SPEC, DEFAULT)
    obs = np.zeros((500, 7, 7, 3), dtype=np.uint8)
    player.act(obs, np.ones(500, dtype=bool))
    assert player.decision is not None
    votes = player.decision.votes
    assert all((votes[i] != votes[j]).any() for i, j in ((0, 1), (0, 2), (1, 2)))


def test_random_streams_of_small_seeds_differ():
    seeds = [stream_seed(seed, stream) for seed in range(200) for stream in range(40)]
    assert len(set(seeds)) == len(seeds) and 0 <= min(seeds) <= max(seeds) < 2**64
    assert stream_seed(7, 0) == 7


def test_default_quorum_is_more_than_half():
    assert [DEFAULT.quorum(members) for members in (1, 4, 5, 10)] == [1, 3, 3, 6]
    assert replace(DEFAULT, min_agree=8).quorum(10) == 8


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ConsensusConfig(leader=5), "--leader is 5; accepted: 0 to 4"),
        (ConsensusConfig(alpha=0.0), "--alpha is 0.0; accepted: 0.001 to 1"),
        (ConsensusConfig(min_agree=-1), "--min-agree is -1; accepted: 0 or more"),
        (ConsensusConfig(fallback="leader"), "--fallback is 'leader'"),  # type: ignore[arg-type]
        (ConsensusConfig(), "--fallback is explorer but there is no explorer; accepted: random, none"),
    ],
)
def test_invalid_settings_are_rejected(config: ConsensusConfig, message: str):
    with pytest.raises(InputError, match=message):
        ConsensusAgent(MEMBERS_ALL, None, SPEC, config)
