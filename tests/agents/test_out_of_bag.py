"""Out-of-bag panels by hand and in the consensus agent."""

from functools import partial

import numpy as np
import pytest
import torch

from expgen.agents.consensus import ConsensusAgent, ConsensusConfig
from expgen.agents.out_of_bag import OutOfBag, panel_levels
from expgen.agents.quorum import panel_quorum
from expgen.agents.vote import Agreement, full_panel
from expgen.envs.levels import LevelSet
from expgen.envs.make import make_env
from expgen.envs.vec_env import EnvSpec, Observation
from expgen.evaluation.evaluate import evaluate, play_episodes, result_of
from expgen.networks.actor_critic import NetworkConfig, Policy, make_policy

SEEN = [LevelSet((0, 1, 2)), LevelSet((2, 3)), LevelSet((0, 3)), LevelSet((0, 1, 2, 3))]
LEVELS = LevelSet((0, 1, 2, 3))


def showing(level: list[int]) -> Observation:
    """Return an observation with only the fields that a panel reads."""
    nothing = np.zeros(len(level))
    return Observation(nothing, nothing, nothing, nothing, np.array(level, dtype=np.int32), nothing, nothing)


def test_panel_levels_are_unseen_by_two_members():
    assert panel_levels(SEEN, LEVELS).seeds == (1,)  # unseen by members 1 and 2; the other levels by at most one
    assert panel_levels([*SEEN, LevelSet((9,))], LEVELS).seeds == (0, 1, 2, 3)
    assert panel_levels(SEEN[:1], LEVELS).seeds == ()


def test_panel_has_members_that_did_not_see_the_level_and_leaders_rotate():
    panels = OutOfBag([*SEEN, LevelSet((9,))], LEVELS, quorum=5)
    panels.watch(showing([1, 1, 0, 3]), np.array([0, 1, 5, -1]))
    panel = panels(np.array([0, 1, 2, 3]))
    assert panel.is_voter.T.astype(int).tolist() == [[0, 1, 1, 0, 1], [0, 1, 1, 0, 1], [0, 1, 0, 0, 1], [1, 0, 0, 0, 1]]
    assert panel.leader.tolist() == [1, 2, 4, 0] and panel.quorum.tolist() == [3, 3, 2, 2]
    some = panels(np.array([2]))
    assert some.is_voter.T.tolist() == [panel.is_voter[:, 2].tolist()] and some.leader.tolist() == [4]


@pytest.mark.parametrize(
    ("quorum", "of", "expected"),
    [
        (1, 10, [1, 1, 1, 1]),  # only the leader, in panels of 2, 3, 4 and 10
        (10, 10, [2, 3, 4, 10]),  # all
        (4, 10, [2, 2, 2, 4]),  # a third of the others
        (5, 10, [2, 2, 3, 5]),  # four ninths of them
        (7, 10, [2, 3, 3, 7]),  # two thirds
        (1, 1, [1, 1, 1, 1]),
    ],
)
def test_panel_quorum_is_a_share_of_the_other_members(quorum: int, of: int, expected: list[int]):
    assert panel_quorum(quorum, of, np.array([2, 3, 4, 10])).tolist() == expected


def test_members_that_do_not_vote_are_not_counted():
    votes = np.array([[1, -1, 2], [1, 3, -1], [-1, 3, 2]])
    assert Agreement(5, None).count(votes, np.array([0, 1, 2])).tolist() == [2, 2, 2]
    assert Agreement(5, {"last": (4,)}).count(np.array([[4], [-1]]), np.array([0])).tolist() == [1]


SPEC = EnvSpec("minimaze", (7, 7, 3), "uint8", 5)
MAZES = {"max_cells": 3, "time_limit": 25}


def policy(seed: int, memory: str = "none") -> Policy:
    config = NetworkConfig(features=16, memory=memory)  # type: ignore[arg-type]
    made = make_policy(SPEC, config, torch.Generator().manual_seed(seed), torch.device("cpu"))
    made.policy_head.weight.data *= 60  # clear preferences
    return made


MEMBERS, EXPLORER = [policy(seed) for seed in range(4)], policy(99, "gru")


def test_only_members_that_did_not_train_on_a_level_vote():
    seen = [LevelSet((0, 1, 2, 3)), LevelSet((2, 3, 4, 5)), LevelSet((0, 5)), LevelSet((1, 4))]
    levels = panel_levels(seen, LevelSet(range(6)))
    panels = OutOfBag(seen, levels, quorum=3)
    agent = ConsensusAgent(MEMBERS, EXPLORER, SPEC, ConsensusConfig(min_agree=3), 4, panels)
    asked: set[tuple[int, int]] = set()
    played: set[int] = set()

    class Witness:
        def watch(self, observation: Observation, episode: np.ndarray) -> None:
            panels.watch(observation, episode)
            played.update(observation.level.tolist())

        def act(self, obs: np.ndarray, first: np.ndarray, episode: np.ndarray) -> np.ndarray:
            action = agent.act(obs, first, episode)
            assert agent.decision is not None
            for member, env in zip(*np.nonzero(agent.decision.votes >= 0)):
                asked.add((int(member), int(panels.level[env])))
            return action

    witness, env = Witness(), make_env("minimaze", levels, 5, **MAZES)
    result_of(play_episodes(witness, env, 60, watcher=witness))  # type: ignore[arg-type]
    assert played == set(levels.seeds or ())
    assert asked == {(m, level) for m in range(4) for level in played if level not in seen[m]}
    assert 0 < agent.tally.agreed < agent.tally.votes < agent.tally.steps


def test_majority_is_taken_within_the_panel():
    """Members with one certain action: the two that go left have seen the level; of the others two go up."""
    seen = [LevelSet((0,)), LevelSet((0,)), LevelSet((9,)), LevelSet((9,)), LevelSet((9,))]
    members = [policy(0) for _ in seen]
    for action, member in zip((1, 1, 2, 3, 3), members):
        member.policy_head.weight.data.zero_()
        member.policy_head.bias.data.copy_(100 * torch.eye(5)[action])
    panels = OutOfBag(seen, LevelSet((0,)), quorum=3)
    agent = ConsensusAgent(members, EXPLORER, SPEC, ConsensusConfig(min_agree=3, vote="majority"), 4, panels)
    panels.watch(showing([0, 0, 0]), np.arange(3))  # led by members 2, 3 and 4
    action = agent.act(np.zeros((3, *SPEC.obs_shape), dtype=np.uint8), np.ones(3, dtype=bool), np.arange(3))
    assert agent.decision is not None and (agent.decision.votes[:2] == -1).all()
    assert agent.decision.candidate.tolist() == [3, 3, 4] and agent.decision.agreed.all()
    assert action.tolist() == [3, 3, 3]


def test_out_of_bag_with_all_members_plays_like_the_whole_ensemble():
    nothing = [LevelSet((999,))] * 4
    levels = LevelSet(range(12))
    config = ConsensusConfig(min_agree=3)
    panels = OutOfBag(nothing, levels, quorum=3)
    one = ConsensusAgent(MEMBERS, EXPLORER, SPEC, config, 4, panels)
    rotating = result_of(play_episodes(one, make_env("minimaze", levels, 5, **MAZES), 12, 0, panels))
    for leader in range(4):  # episode e is led by member e mod 4
        other = ConsensusAgent(MEMBERS, EXPLORER, SPEC, config, 4, partial(full_panel, 4, leader, 3))
        fixed = evaluate(other, make_env("minimaze", levels, 5, **MAZES), 12).episodes
        assert fixed[leader::4] == rotating[leader::4]
