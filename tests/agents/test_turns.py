"""TurnsAgent: who acts when, memory of the others, and settings."""

import numpy as np
import pytest
import torch

from expgen.agents.agent import PolicyAgent, TurnsAgent, explorers_agent
from expgen.agents.build import build_agent
from expgen.agents.consensus import ConsensusAgent, ConsensusConfig
from expgen.agents.vote_kinds import changed_consensus
from expgen.errors import InputError
from expgen.evaluation.scores import read_scores
from expgen.random import WITH_MEMORY
from expgen.runs.agent_files import read_agent
from tests.agents.test_consensus import EXPLORER, MEMBERS_ALL, SPEC, sure_of

NUM_ENVS, STEPS = 5, 13


def frames(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (STEPS, NUM_ENVS, *SPEC.obs_shape)).astype(SPEC.obs_dtype)


def played(agent, obs: np.ndarray) -> np.ndarray:
    """Return the actions `[T, N]` of one episode in every environment."""
    episode = np.arange(NUM_ENVS)
    return np.stack([agent.act(step, np.full(NUM_ENVS, t == 0), episode) for t, step in enumerate(obs)])


def test_single_explorer_plays_like_a_policy_agent() -> None:
    obs = frames()
    alone = played(PolicyAgent(EXPLORER, 3, WITH_MEMORY), obs)
    assert np.array_equal(played(explorers_agent([EXPLORER], 4, 3), obs), alone)


def test_explorers_take_turns_of_four_steps_from_a_random_first() -> None:
    agent = TurnsAgent([sure_of(action, "gru") for action in (0, 1, 2)], 4, seed=7)
    actions = played(agent, frames())
    for env in range(NUM_ENVS):
        begins = actions[0, env]
        assert actions[:, env].tolist() == [(begins + t // 4) % 3 for t in range(STEPS)]
    firsts = {int(played(TurnsAgent(list(agent_policies()), 4, seed), frames())[0, 0]) for seed in range(20)}
    assert firsts == {0, 1, 2}


def agent_policies():
    return (sure_of(action, "gru") for action in (0, 1, 2))


def test_turns_of_one_step_select_all_explorers_equally_often() -> None:
    agent = TurnsAgent(list(agent_policies()), 1, seed=1)
    obs, counts = frames(), np.zeros(3)
    for episode in range(40):
        agent.clock.__init__()  # type: ignore[misc]
        for t, step in enumerate(obs):
            action = agent.act(step, np.full(NUM_ENVS, t == 0), np.arange(NUM_ENVS) + NUM_ENVS * episode)
            counts += np.bincount(action, minlength=3)
    share = counts / counts.sum()  # 2,600 draws: standard deviation 0.009
    assert share == pytest.approx([1 / 3] * 3, abs=0.04)


def test_all_explorers_see_every_frame() -> None:
    obs = frames()
    both = TurnsAgent([EXPLORER, sure_of(2, "gru")], 6, seed=2)
    played(both, obs)
    alone = PolicyAgent(EXPLORER, 2)
    played(alone, obs)
    assert torch.equal(both.agents[0].state, alone.state)


def test_turns_of_explorers_do_not_depend_on_the_batch() -> None:
    obs, policies = frames(), [EXPLORER, *agent_policies()]
    whole = played(TurnsAgent(policies, 3, seed=5), obs)
    agent = TurnsAgent(policies, 3, seed=5)
    one = [agent.act(step[2:3], np.array([t == 0]), np.array([2]))[0] for t, step in enumerate(obs)]
    assert one == whole[:, 2].tolist()


def test_policies_without_memory_are_evaluated_only_in_their_turn() -> None:
    asked: list[int] = []

    class Counting(torch.nn.Module):
        state_size = 0

        def __init__(self) -> None:
            super().__init__()
            self.policy = sure_of(1)

        def forward(self, obs, first, state):
            asked.append(obs.shape[1])
            return self.policy(obs, first, state)

    agent = TurnsAgent([sure_of(0, "gru"), Counting()], 4, seed=7)
    actions = played(agent, frames())
    assert {tuple(actions[:4, env]) for env in range(NUM_ENVS)} <= {(0,) * 4, (1,) * 4}
    assert sum(asked) == (actions == 1).sum()
    assert np.array_equal(agent.noisy_logits.argmax(1), actions[-1])


def test_turns_of_policies_without_memory_do_not_depend_on_the_batch() -> None:
    policies = [EXPLORER, MEMBERS_ALL[0], sure_of(2)]
    obs = frames()
    whole = played(TurnsAgent(policies, 3, seed=5), obs)
    agent = TurnsAgent(policies, 3, seed=5)
    one = [agent.act(step[2:3], np.array([t == 0]), np.array([2]))[0] for t, step in enumerate(obs)]
    assert one == whole[:, 2].tolist()


def test_patience_lets_only_members_act_first() -> None:
    policies = [sure_of(0), sure_of(1), sure_of(2, "gru"), sure_of(3, "gru")]
    actions = played(TurnsAgent(policies, 2, seed=7, members=2, patience=5), frames())
    for env in range(NUM_ENVS):
        early, late = actions[:5, env].tolist(), actions[5:, env].tolist()
        begins = early[0]
        assert early == [(begins + t // 2) % 2 for t in range(5)]
        assert late == [(late[0] + (t // 2 - 2)) % 4 for t in range(5, STEPS)]  # step 5 is in the third turn
    assert {*actions[0]} == {0, 1}


def test_patience_explorers_see_frames_of_members() -> None:
    obs = frames()
    both = TurnsAgent([sure_of(0), EXPLORER], 50, seed=2, members=1, patience=8)
    played(both, obs)
    alone = PolicyAgent(EXPLORER, 2)
    played(alone, obs)
    assert torch.equal(both.agents[1].state, alone.state)


def test_patience_is_rejected_with_a_vote_or_without_explorers(small, tmp_path) -> None:
    with pytest.raises(InputError, match="--patience is given but needs --vote turns; accepted: --ensemble-size"):
        changed_consensus(ConsensusConfig(), {"patience": 9}, 3)
    small.train(tmp_path, 1, algo="openend", members=2)
    with pytest.raises(InputError, match="--patience is given but there are no members to vote; accepted: --vote"):
        build_agent(read_agent(tmp_path), changes={"vote": "turns", "patience": 9})
    with pytest.raises(InputError, match="--patience is 9 but the agent needs both members and explorers; accepted: 0"):
        TurnsAgent([sure_of(0), sure_of(1)], 50, members=2, patience=9)


def test_too_large_turn_is_rejected() -> None:
    with pytest.raises(InputError, match=r"--turn is 1000.*; accepted: 1 to 1000000000"):
        changed_consensus(ConsensusConfig(), {"turn": 10**23}, 3)


def test_consensus_agent_rejects_vote_turns() -> None:
    with pytest.raises(InputError, match="--vote is turns; accepted by ConsensusAgent: leader, majority"):
        ConsensusAgent([MEMBERS_ALL[0]], EXPLORER, SPEC, ConsensusConfig(vote="turns"))


@pytest.mark.parametrize("settings", [{"min_agree": 2}, {"once": True}, {"hedge": 0.1}, {"fallback": "random"}])
def test_vote_settings_are_rejected_with_vote_turns(settings) -> None:
    (name,) = settings
    refused = f"--{name.replace('_', '-')} is given but --vote turns has no vote; accepted: --vote, --turn"
    with pytest.raises(InputError, match=refused):
        changed_consensus(ConsensusConfig(vote="turns"), settings, 3)
    assert changed_consensus(ConsensusConfig(vote="turns"), {**settings, "vote": "majority"}, 3).vote == "majority"


@pytest.mark.parametrize("settings", [{"min_agree": 2}, {"leader": 1}, {"once": True}, {"fallback": "random"}])
def test_vote_settings_are_rejected_without_members(settings, small, tmp_path) -> None:
    (name,) = settings
    refused = f"--{name.replace('_', '-')} is given but there are no members to vote; accepted: --vote, --turn"
    with pytest.raises(InputError, match=refused):
        changed_consensus(ConsensusConfig(), settings, 0)
    with pytest.raises(InputError, match=refused):
        small.train(tmp_path, 1, algo="openend", members=2, **settings)
    assert not (tmp_path / "agent.json").exists()


def test_run_with_vote_turns_is_not_scored_with_random_fallback(small, tmp_path) -> None:
    small.train(tmp_path, 1, algo="expgen", members=2, eval_every=small.update_steps, vote="turns", **small.explorer)
    settings = {row.settings for row in read_scores(tmp_path / "scores.csv") if row.agent == "expgen"}
    assert settings == {"members=2 explorers=1 turn=50 vote=turns"}


def test_vote_turns_uses_members_and_explorers_of_a_run(small, tmp_path) -> None:
    run = tmp_path / "run"
    small.train(run, 1, algo="expgen", members=2, **small.explorer)
    loaded = build_agent(read_agent(run), changes={"vote": "turns", "turn": 7})
    assert isinstance(loaded.agent, TurnsAgent)
    assert (len(loaded.agent.agents), loaded.agent.turn) == (3, 7)
    assert [agent.policy.state_size > 0 for agent in loaded.agent.agents] == [False, False, True]
    settings = {"vote": "turns", "turn": 7, "members": 2, "explorers": 1}
    assert loaded.settings == settings
    assert loaded.env_steps == 3 * small.update_steps
    patient = build_agent(read_agent(run), changes={"vote": "turns", "patience": 9})
    assert (patient.agent.members, patient.agent.patience) == (2, 9)  # type: ignore[attr-defined]
    assert patient.settings == {"vote": "turns", "turn": 50, "members": 2, "explorers": 1, "patience": 9}


def test_patience_is_not_in_score_settings_when_vote_is_overridden(small, tmp_path) -> None:
    small.train(tmp_path, 1, algo="expgen", members=2, vote="turns", patience=9, **small.explorer)
    voting = build_agent(read_agent(tmp_path), changes={"vote": "majority"})
    assert isinstance(voting.agent, ConsensusAgent)
    assert voting.settings == {"vote": "majority", "members": 2}
