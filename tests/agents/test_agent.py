"""Agents: sampling, memory within an episode, and independence of the batch."""

import numpy as np
import pytest
import torch

from expgen.agents.agent import PolicyAgent, UniformAgent
from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import NetworkConfig, Policy, make_policy
from expgen.random import gumbel_noise

SPEC = EnvSpec("toy", (3,), "float32", 4)


def make_policy_of(memory: str = "none") -> Policy:
    config = NetworkConfig(features=8, memory=memory)  # type: ignore[arg-type]
    policy = make_policy(SPEC, config, torch.Generator().manual_seed(0), torch.device("cpu"))
    policy.policy_head.weight.data *= 100  # clear preferences
    return policy


def observations(steps: int, num_envs: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(steps, num_envs, 3)).astype(np.float32)


def test_uniform_agent_samples_all_actions_equally_often():
    agent, num = UniformAgent(5), 20_000
    first = np.ones(num, dtype=bool)
    action = agent.act(np.zeros((num, 3)), first)
    assert action.dtype == np.int32 and action.min() == 0 and action.max() == 4
    np.testing.assert_allclose(np.bincount(action) / num, 0.2, atol=0.012)


def test_policy_agent_samples_the_softmax():
    policy, num = make_policy_of(), 20_000
    obs = np.tile(observations(1, 1)[0], (num, 1))
    first = np.ones(num, dtype=bool)
    action = PolicyAgent(policy).act(obs, first)
    with torch.no_grad():
        logits = policy(torch.from_numpy(obs[None, :1]), torch.tensor([[True]]), torch.zeros(1, 0)).logits
    wanted = logits.flatten().softmax(0).numpy()
    assert wanted.max() < 0.9
    np.testing.assert_allclose(np.bincount(action, minlength=4) / num, wanted, atol=0.015)
    assert action.dtype == np.int32


def test_policy_agent_matches_step_by_step_computation():
    policy, obs = make_policy_of("gru"), observations(6, 2)
    agent, state = PolicyAgent(policy, seed=9), torch.zeros(2, 8)
    first = np.array([[True, True], [False, False], [False, True], [False, False], [True, False], [False, False]])
    step = np.array([[0, 0], [1, 1], [2, 0], [3, 1], [0, 2], [1, 3]])
    episode = np.array([[0, 1], [0, 1], [0, 3], [0, 3], [2, 3], [2, 3]])
    for t in range(6):
        with torch.no_grad():
            out = policy(torch.from_numpy(obs[t : t + 1]), torch.from_numpy(first[t : t + 1]), state)
        state = out.state
        expected = (out.logits[0].numpy() + gumbel_noise(9, episode[t], step[t], 4)).argmax(1)
        assert agent.act(obs[t], first[t]).tolist() == expected.tolist()
        assert torch.equal(agent.state, state) and state.any()


@pytest.mark.parametrize("kind", ["uniform", "policy", "gru"])
def test_actions_do_not_depend_on_other_environments(kind: str):
    def make() -> PolicyAgent | UniformAgent:
        return UniformAgent(4) if kind == "uniform" else PolicyAgent(make_policy_of("gru" if kind == "gru" else "none"))

    obs, crowd, alone = observations(20, 5), make(), make()
    names = np.array([10, 11, 12, 13, 14])
    for t in range(20):
        first = np.full(5, t == 0)
        together = crowd.act(obs[t], first, names)
        single = alone.act(obs[t, 3:4], first[3:4], names[3:4])
        assert together[3] == single[0]


def test_new_episode_resets_memory():
    agent, obs = PolicyAgent(make_policy_of("gru")), observations(4, 1)
    for t in range(3):
        agent.act(obs[t], np.array([t == 0]))
    agent.act(obs[3], np.array([True]))
    fresh = PolicyAgent(make_policy_of("gru"))
    fresh.act(obs[3], np.array([True]))
    assert torch.equal(agent.state, fresh.state)


def test_changed_number_of_environments_resets_memory():
    agent = PolicyAgent(make_policy_of("gru"))
    agent.act(observations(1, 3)[0], np.ones(3, dtype=bool))
    agent.act(observations(1, 2)[0], np.zeros(2, dtype=bool))
    fresh = PolicyAgent(make_policy_of("gru"))
    fresh.act(observations(1, 2)[0], np.ones(2, dtype=bool))
    assert torch.equal(agent.state, fresh.state)


def test_agents_with_different_seeds_act_differently():
    obs, first = observations(1, 200)[0], np.ones(200, dtype=bool)
    actions = [PolicyAgent(make_policy_of(), seed).act(obs, first).tolist() for seed in (0, 0, 1)]
    assert actions[0] == actions[1] != actions[2]


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_policies_are_not_evaluated_for_negative_episodes(memory: str):
    obs, agent, alone = observations(8, 3), PolicyAgent(make_policy_of(memory)), PolicyAgent(make_policy_of(memory))
    for t in range(8):
        counts = np.array([True, t < 3 or t > 5, True])
        first = np.array([t == 0, t in (0, 6), t == 0])
        names = np.where(counts, [10, 11 + (t > 5), 12], -1)
        action = agent.act(obs[t], first, names)
        assert agent.output is not None and agent.output.logits.shape[1] == counts.sum()
        single = alone.act(obs[t], first, np.array([10, 11 + (t > 5), 12]))
        assert np.array_equal(action[counts], single[counts])
    agent.output = None
    assert agent.act(obs[0], np.zeros(3, dtype=bool), np.full(3, -1)).tolist() == [0, 0, 0] and agent.output is None
