"""Hedged exploration: objections by hand, replaced actions, and a slow reference of the whole agent."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from expgen.agents.agent import PolicyAgent
from expgen.agents.consensus import ConsensusAgent, ConsensusConfig
from expgen.agents.decision import Actor
from expgen.agents.hedge import bad_actions, hedged_action
from expgen.agents.vote import Agreement, Panel, classes_of, full_panel
from expgen.agents.vote_kinds import changed_consensus
from expgen.algorithms.daac import AdvantageHead
from expgen.envs.levels import LevelSet
from expgen.envs.make import make_env
from expgen.envs.vec_env import EnvSpec, Observation
from expgen.errors import InputError
from expgen.evaluation.deaths import DeathCount
from expgen.evaluation.evaluate import evaluate
from expgen.networks.actor_critic import NetworkConfig, Policy, PolicyOutput, make_policy
from expgen.random import gumbel_noise

MAZES = {"max_cells": 3, "time_limit": 25}
SPEC = EnvSpec("minimaze", (7, 7, 3), "uint8", 5)
BY_ACTION = Agreement(3, None)


def log(*probability: float) -> list[float]:
    return [math.log(share) for share in probability]


def panel_of(members: int, quorum: int) -> Panel:
    return full_panel(members, 0, quorum, np.arange(1))


def test_bad_actions_by_hand():
    """h = 0.2: members 0 and 1 object to actions below 0.16, member 2 to actions below 0.1."""
    logits = np.array([[log(0.8, 0.1, 0.1)], [log(0.1, 0.8, 0.1)], [log(0.5, 0.11, 0.39)]])
    for quorum, expected in ((1, [True, True, True]), (2, [False, False, True]), (3, [False, False, False])):
        assert bad_actions(logits, panel_of(3, quorum), BY_ACTION, 0.2).tolist() == [expected]


def test_members_outside_the_panel_do_not_object():
    logits = np.array([[log(0.8, 0.1, 0.1)]] * 2)
    panel = Panel(np.array([[True], [False]]), np.array([0]), np.array([2]))
    assert not bad_actions(logits, panel, BY_ACTION, 0.2).any()


def test_probabilities_of_one_action_class_are_summed():
    """Left is action 0 or 1, each 0.05: together 0.1 of 0.8. Action 3 is in no class and counts alone."""
    agreement = Agreement(4, {"left": (0, 1), "right": (2,)})
    logits = np.array([[log(0.05, 0.05, 0.8, 0.1)]])
    assert bad_actions(logits, panel_of(1, 1), agreement, 0.12).tolist() == [[False, False, False, False]]
    assert bad_actions(logits, panel_of(1, 1), agreement, 0.13).tolist() == [[True, True, False, True]]


@pytest.mark.parametrize("fallback", ["random", "none"])
def test_hedge_without_explorer_is_refused_before_anything_is_trained(fallback: Any, small: Any, tmp_path: Path):
    refused = f"^--hedge is 0.1 but --fallback is {fallback}; accepted: 0, or a policy as explorer$"
    with pytest.raises(InputError, match=refused):
        small.train(tmp_path / "run", 1, algo="expgen", members=2, hedge=0.1, fallback=fallback, **small.explorer)
    assert not (tmp_path / "run").exists()
    for before, values in (({"hedge": 0.1}, {"fallback": fallback}), ({"fallback": fallback}, {"hedge": 0.1})):
        with pytest.raises(InputError, match=refused):
            changed_consensus(ConsensusConfig(**before), values, 2)
    assert changed_consensus(ConsensusConfig(hedge=0.1, fallback=fallback), {"hedge": 0.0}, 2).hedge == 0


def test_hedged_action_is_next_best_or_own_if_all_are_bad():
    noisy = np.array([[3.0, 2.0, 1.0]] * 4)
    bad = np.array([[False, True, True], [True, False, False], [True, True, False], [True, True, True]])
    assert hedged_action(noisy, bad).tolist() == [0, 1, 2, 0]
    never = np.array([[1.0, -np.inf, -np.inf]])  # an explorer with only one possible action
    assert hedged_action(never, np.array([[True, False, False]])).tolist() == [0]


def test_hedged_actions_follow_the_explorers_renormalised_probabilities():
    number = np.arange(100_000)
    noisy = np.array(log(0.5, 0.3, 0.2)) + gumbel_noise(1, number, np.zeros_like(number), 3)
    action = hedged_action(noisy, np.tile([True, False, False], (len(number), 1)))
    np.testing.assert_allclose(np.bincount(action) / len(action), [0, 0.6, 0.4], atol=0.005)


def test_advantage_head_ranks_actions_equally_on_every_frame():
    """The reason why hedging uses the members' probabilities instead of A_φ."""
    generator = torch.Generator().manual_seed(0)
    policy = make_policy(SPEC, NetworkConfig(features=16), generator, torch.device("cpu"))
    head = AdvantageHead(policy, generator)
    obs = torch.randint(256, (1, 50, 7, 7, 3), dtype=torch.uint8, generator=generator)
    output = policy(obs, torch.zeros(1, 50, dtype=torch.bool), torch.zeros(50, 0))
    advantage = torch.stack([head(output.value[0], torch.full((50,), action)) for action in range(5)], 1)  # [50, A]
    assert output.value.std() > 0 and (advantage.argsort(1) == advantage[0].argsort()).all()


def make(seed: int, memory: str = "none") -> Policy:
    config = NetworkConfig(features=16, memory=memory)  # type: ignore[arg-type]
    policy = make_policy(SPEC, config, torch.Generator().manual_seed(seed), torch.device("cpu"))
    policy.policy_head.weight.data *= 200
    return policy


MEMBERS, EXPLORERS = [make(seed) for seed in range(5)], [make(99, "gru"), make(98, "gru")]


@pytest.mark.parametrize("explorers", [EXPLORERS[:1], EXPLORERS])
@pytest.mark.parametrize("settings", [{"min_agree": 3}, {"min_agree": 2, "vote": "majority", "once": True}])
def test_hedging_matches_step_by_step_computation(explorers: list[Policy], settings: dict[str, Any]):
    """Slow reference: decisions of the agent without hedging, and objections counted in loops."""
    config = ConsensusConfig(hedge=0.3, **settings)
    hedged, plain = (
        ConsensusAgent(MEMBERS, explorers, SPEC, ConsensusConfig(**own), 4)
        for own in ({"hedge": 0.3, **settings}, settings)
    )
    classes = classes_of(SPEC)
    assert classes is not None
    env = make_env("minimaze", levels="50", num_envs=4, seed=1, **MAZES)
    num_hedged = 0
    for _ in range(150):
        seen = env.observe()
        expected, got = plain.act(seen.obs, seen.first), hedged.act(seen.obs, seen.first)
        assert plain.decision is not None and hedged.decision is not None
        assert np.array_equal(plain.decision.actor, hedged.decision.actor)
        noisy: np.ndarray = plain.fallback.noisy_logits  # type: ignore[union-attr]
        for i in range(4):
            objections = [0] * 5
            for member in MEMBERS:
                obs, first = torch.from_numpy(seen.obs[None, i : i + 1]), torch.zeros(1, 1, dtype=torch.bool)
                share = torch.softmax(member(obs, first, torch.zeros(1, 0)).logits[0, 0], 0).tolist()
                for action in range(5):  # each direction and the no-op is one action
                    objections[action] += share[action] < 0.3 * max(share)
            left = [action for action in range(5) if objections[action] < config.min_agree]
            want = expected[i]
            if hedged.decision.actor[i] == Actor.EXPLORER and left:
                want = max(left, key=lambda action: noisy[i, action])
            assert got[i] == want and hedged.decision.hedged[i] == (want != expected[i])
            num_hedged += want != expected[i]
        env.act(got)
    counts = hedged.tally
    assert 0 < num_hedged == counts.hedged < counts.explored and plain.tally.hedged == 0


@pytest.mark.parametrize(("hedge", "asked_about"), [(0.0, []), (0.1, [3])])
def test_members_are_evaluated_while_exploring_only_with_hedging(
    hedge: float, asked_about: list[int], monkeypatch: pytest.MonkeyPatch
):
    obs, asked = np.zeros((3, 7, 7, 3), dtype=np.uint8), []
    player = ConsensusAgent(MEMBERS, EXPLORERS[0], SPEC, ConsensusConfig(min_agree=6, alpha=0.001, hedge=hedge))
    player.act(obs, np.ones(3, dtype=bool))
    logits = player.ensemble.logits
    monkeypatch.setattr(player.ensemble, "logits", lambda frames: asked.append(len(frames)) or logits(frames))
    player.act(obs, np.zeros(3, dtype=bool))
    assert asked == asked_about


def test_impossible_quorum_never_hedges():
    config = ConsensusConfig(min_agree=6, hedge=1.0)
    env = make_env("minimaze", levels="100:10", num_envs=4, seed=0, **MAZES)
    player = ConsensusAgent(MEMBERS, EXPLORERS[0], SPEC, config, 4)
    other = make_env("minimaze", levels="100:10", num_envs=4, seed=0, **MAZES)
    alone = evaluate(PolicyAgent(EXPLORERS[0], 4), other, episodes=20, seed=5)
    assert evaluate(player, env, episodes=20, seed=5).episodes == alone.episodes


def test_hedged_episodes_do_not_depend_on_number_of_environments():
    results = []
    for num_envs, env_seed in ((4, 0), (16, 7)):
        env = make_env("minimaze", levels="100:10", num_envs=num_envs, seed=env_seed, **MAZES)
        player = ConsensusAgent(MEMBERS, EXPLORERS, SPEC, ConsensusConfig(min_agree=3, hedge=0.3), 4)
        results.append((evaluate(player, env, episodes=40, seed=5).episodes, player.tally))
    assert results[0] == results[1] and results[0][1].hedged > 0


@pytest.mark.parametrize("fallback", ["random", "none"])
def test_hedging_requires_an_explorer_with_logits(fallback: str):
    config = ConsensusConfig(fallback=fallback, hedge=0.1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"--hedge is 0.1 but --fallback is {fallback}; accepted: 0, or a policy"):
        ConsensusAgent(MEMBERS, None, SPEC, config)


class Sure(nn.Module):
    """A policy with the same logits on every frame."""

    state_size = 0

    def __init__(self, *logits: float) -> None:
        super().__init__()
        self.row = nn.Parameter(torch.tensor(logits))

    def forward(self, obs: Tensor, first: Tensor, state: Tensor) -> PolicyOutput:
        return PolicyOutput(self.row.expand(*first.shape, -1), self.row[0].expand(first.shape), state)


class Cliff:
    """Action 1 kills the agent; three other steps solve an episode."""

    def __init__(self, num_envs: int) -> None:
        self.spec, self.levels = EnvSpec("cliff", (1,), "float32", 3), LevelSet.parse("all")
        self.num_envs, self.elapsed = num_envs, np.zeros(num_envs, dtype=np.int64)
        self.solved = np.zeros(num_envs, dtype=bool)
        self.first = ~self.solved

    def act(self, action: np.ndarray) -> None:
        self.elapsed += 1
        self.solved = (action != 1) & (self.elapsed == 3)
        self.first = self.solved | (action == 1)
        self.elapsed[self.first] = 0

    def observe(self) -> Observation:
        obs, none = self.elapsed[:, None].astype(np.float32), np.zeros(self.num_envs, dtype=np.int32)
        return Observation(obs, obs, self.solved * np.float32(1), self.first, none, self.solved, none.astype(bool))

    def close(self) -> None: ...


@pytest.mark.parametrize(("hedge", "deaths"), [(0.0, 12), (0.05, 0)])
def test_hedging_avoids_actions_that_all_members_avoid_and_counts_deaths(hedge: float, deaths: int):
    """The members disagree, so the explorer acts; both give its preferred action a very low probability."""
    members: list[Any] = [Sure(0.0, -90.0, -30.0), Sure(-30.0, -90.0, 0.0)]
    explorer: Any = Sure(0.0, 50.0, 0.0)
    env = Cliff(2)
    config = ConsensusConfig(min_agree=2, alpha=0.001, hedge=hedge)
    player = ConsensusAgent(members, explorer, env.spec, config, 3)
    died = DeathCount(player)
    result = evaluate(player, env, episodes=12, seed=0, on_episode=died)
    counts = player.tally
    assert sum(episode.died for episode in result.episodes) == deaths
    assert died.deaths == (deaths, deaths) and counts.explored > 0
    assert counts.hedged == (counts.explored if hedge else 0)
