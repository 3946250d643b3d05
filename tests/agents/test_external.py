"""The consensus agent over external policies (functions, modules, other agents), and `predict`."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from torch import nn

import expgen
from expgen.agents.agent import PolicyAgent, UniformAgent
from expgen.agents.consensus import ConsensusAgent, ConsensusConfig
from expgen.agents.external import consensus_agent, spec_of
from expgen.envs.make import make_env
from expgen.errors import InputError
from expgen.networks.actor_critic import Policy
from tests.agents.test_consensus import EXPLORER, MAZES, MEMBERS_ALL, SPEC, play

ELSEWHERE = replace(SPEC, name="elsewhere", num_actions=3)
FIRST = np.ones(2, dtype=bool)
FRAME = np.zeros((2, 7, 7, 3), dtype=np.uint8)


def as_function(policy: Policy) -> Any:
    """Return a function from an array to the logits of one of our policies."""

    @torch.no_grad()
    def logits(obs: np.ndarray) -> np.ndarray:
        assert isinstance(obs, np.ndarray)
        first, state = torch.zeros(1, len(obs), dtype=torch.bool), torch.zeros(len(obs), 0)
        return policy(torch.from_numpy(obs)[None], first, state).logits[0].numpy()

    return logits


def always(action: int) -> Any:
    return lambda obs: np.full(len(obs), action)


@pytest.mark.parametrize("settings", [{}, {"min_agree": 4, "vote": "majority"}, {"once": True, "leader": 2}])
def test_functions_that_return_a_policys_logits_play_exactly_like_it(settings: dict[str, Any]) -> None:
    ours = ConsensusAgent(MEMBERS_ALL, EXPLORER, SPEC, ConsensusConfig(**settings), 4)
    outside = [as_function(member) for member in MEMBERS_ALL]
    np.testing.assert_array_equal(play(consensus_agent(outside, EXPLORER, SPEC, 4, **settings)), play(ours))


def test_members_of_all_types_vote_together_with_an_agent_as_explorer() -> None:
    class Module(nn.Module):
        def forward(self, obs: torch.Tensor) -> torch.Tensor:
            return torch.tensor([0.0, 0, 0, 50, 0]).expand(len(obs), 5)

    members = [PolicyAgent(MEMBERS_ALL[0]), MEMBERS_ALL[1], Module(), always(3), lambda obs: np.eye(5)[[3] * len(obs)]]
    agent = consensus_agent(members, UniformAgent(5), SPEC, min_agree=5)
    agent.act(FRAME, FIRST)
    assert agent.decision is not None and len(agent.ensemble.members) == 5
    assert (consensus_agent([always(3)] * 3, EXPLORER, SPEC).act(FRAME, FIRST) == 3).all()
    assert (consensus_agent([always(3), always(1)], always(4), SPEC, min_agree=2).act(FRAME, FIRST) == 4).all()
    turns = consensus_agent([always(3), always(1)], [always(4), EXPLORER, always(2)], SPEC, min_agree=2)
    assert len(turns.fallback.agents) == 3 and turns.act(FRAME, FIRST).shape == (2,)  # type: ignore[union-attr]


def test_list_of_explorers_accepts_policy_agents() -> None:
    agents, policies = (
        consensus_agent([always(3), always(1)], explorers, SPEC, min_agree=2)
        for explorers in ([PolicyAgent(EXPLORER), PolicyAgent(MEMBERS_ALL[0])], [EXPLORER, MEMBERS_ALL[0]])
    )
    np.testing.assert_array_equal(play(agents), play(policies))


def test_settings_accept_numpy_numbers() -> None:
    agent = consensus_agent([always(1)] * 3, EXPLORER, SPEC, min_agree=np.int64(2), alpha=np.float64(0.25))
    assert (agent.config.min_agree, agent.config.alpha) == (2, 0.25)


@pytest.mark.parametrize("answer", [np.zeros(1, int), np.zeros((2, 1), int), 3, None])
def test_explorer_with_wrong_number_of_actions_is_rejected(answer: Any) -> None:
    explorer = SimpleNamespace(act=lambda obs, first, episode: answer)
    agent = consensus_agent([always(3), always(1)], explorer, SPEC, min_agree=2)
    with pytest.raises(InputError, match=r"the explorer's actions have shape .*; accepted: \(2,\)"):
        agent.act(FRAME, FIRST)


def test_ensemble_size_limits_the_voting_members() -> None:
    agent = consensus_agent([always(1), always(2), always(2)], None, SPEC, ensemble_size=1, fallback="random")
    assert len(agent.ensemble.members) == 1 and (agent.act(FRAME, FIRST) == 1).all()


def test_spec_of_accepts_any_environment() -> None:
    maze = make_env("minimaze", levels=5, num_envs=2, **MAZES)
    assert spec_of(maze) is maze.spec
    assert spec_of(gymnasium.make_vec("expgen/minimaze", num_envs=2, **MAZES)) == maze.spec
    for env in (gymnasium.make("CartPole-v1"), gymnasium.make_vec("CartPole-v1", num_envs=2)):
        spec = spec_of(env)
        assert (spec.name, spec.obs_shape, spec.obs_dtype, spec.num_actions) == (
            "gymnasium:CartPole-v1", (4,), "float32", 2,
        )  # fmt: skip


def test_spec_of_accepts_objects_with_only_spaces() -> None:
    vector, number = gymnasium.spaces.Box(0, 1, (3,)), gymnasium.spaces.Discrete(4)
    spec = spec_of(SimpleNamespace(observation_space=vector, action_space=number))  # like a VecEnv of Stable-Baselines3
    assert (spec.name, spec.obs_shape, spec.num_actions) == ("gymnasium:SimpleNamespace", (3,), 4)
    both = gymnasium.spaces.Dict({"eye": vector})
    with pytest.raises(InputError, match=r"env has observations Dict.*; accepted: a Box of images or vectors"):
        spec_of(SimpleNamespace(observation_space=both, action_space=number))


def test_evaluate_accepts_agent_of_functions() -> None:
    env = make_env("gymnasium:CartPole-v1", levels=50, num_envs=4)
    lean = lambda obs: (obs[:, 2] + obs[:, 3] > 0).astype(int)  # noqa: E731  (push to where the pole falls)
    agent = consensus_agent([lean, lean, always(0)], None, env, fallback="random")
    assert expgen.evaluate(agent, env, 8).mean_return > 100


@pytest.mark.parametrize(
    ("members", "explorer", "how", "message"),
    [
        ([], EXPLORER, {}, "members is empty; accepted: 1 policy or more"),
        ("maze/expgen", EXPLORER, {}, "members is 'maze/expgen'; accepted: a list of policies"),
        (None, EXPLORER, {}, "members is None; accepted: a list of policies"),
        (always(1), EXPLORER, {}, "members is .*; accepted: a list of policies"),
        (
            [always(1), 3],
            EXPLORER,
            {},
            r"members\[1\] is 3; accepted: a function from observations to logits",
        ),
        ([always(1), "member1"], EXPLORER, {}, r"members\[1\] is 'member1'; accepted: a function"),
        ([nn.Linear], EXPLORER, {}, r"members\[0\] is .*Linear.*; accepted: a function"),
        ([EXPLORER], EXPLORER, {}, r"members\[0\] is a Policy, which has memory; accepted: policies without memory"),
        ([UniformAgent(5)], EXPLORER, {}, r"members\[0\] is UniformAgent\(5 actions\), which has memory"),
        ([always(1)], 7, {}, "explorer is 7; accepted: a function from .* logits, a policy or a model"),
        ([always(1)], None, {}, "--fallback is explorer but there is no explorer; accepted: random, none"),
        ([always(1)], EXPLORER, {"quorum": 2}, "setting 'quorum' of the ensemble is unknown; accepted: ensemble_size"),
        ([always(1)], EXPLORER, {"leader": 1}, "--leader is 1; accepted: 0 to 0"),
        ([always(1)], EXPLORER, {"ensemble_size": 2}, "--ensemble-size is 2; accepted: 0 to 1"),
        ([always(1)], EXPLORER, {"alpha": 0}, "--alpha is 0; accepted: 0.001 to 1"),
        ([always(1)], EXPLORER, {"vote": "all"}, "--vote is 'all'; accepted: leader, majority"),
        ([always(1)], EXPLORER, {"seed": "one"}, "seed is 'one'; accepted: a whole number"),
        ([always(1)], EXPLORER, {"seed": -1}, "seed is -1; accepted: 0 to 2147483647"),
        (
            [always(1)],
            [EXPLORER, UniformAgent(5)],
            {},
            r"explorer\[1\] is UniformAgent.*; accepted: policies, not agents",
        ),
        (
            [PolicyAgent(MEMBERS_ALL[0], spec=SPEC)],
            EXPLORER,
            {"env": ELSEWHERE},
            "env is 'elsewhere' with .*; accepted by",
        ),
        ([always(1)], PolicyAgent(EXPLORER, spec=SPEC), {"env": ELSEWHERE}, "env is 'elsewhere' with .*; accepted by"),
        ([always(1)], EXPLORER, {"env": None}, "env is None; accepted: an environment from make_env or Gymnasium"),
        ([always(1)], EXPLORER, {"env": "minimaze"}, "env is 'minimaze'; accepted: an environment"),
        ([always(1)], EXPLORER, {"env": gymnasium.make("Pendulum-v1")}, "env has actions Box.*; accepted: Discrete"),
    ],
)
def test_invalid_members_and_settings_are_rejected(
    members: Any, explorer: Any, how: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        consensus_agent(members, explorer, **{"env": SPEC, **how})
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda obs: np.zeros((len(obs), 4)),
            r"\[0\] returned torch.float64 of shape \(2, 4\); .*logits \(2, 5\)",
        ),
        (
            lambda obs: np.zeros(len(obs)),
            r"\[0\] returned torch.float64 of shape \(2,\); .*actions \(2,\) as whole",
        ),
        (lambda obs: 3, r"members\[0\] returned torch.int64 of shape \(\)"),
        (lambda obs: np.full(len(obs), 5), r"members\[0\] chose \[5, 5\]; accepted: actions 0 to 4"),
        (lambda obs: np.full(len(obs), -1), r"members\[0\] chose \[-1, -1\]; accepted: actions 0 to 4"),
        (lambda obs: np.full((len(obs), 5), np.nan), r"members\[0\] returned NaN logits"),
    ],
)
def test_invalid_outputs_of_members_are_rejected(answer: Any, message: str) -> None:
    agent = consensus_agent([answer], EXPLORER, SPEC)
    with pytest.raises(InputError, match=message):
        agent.act(FRAME, FIRST)


AGENTS = {
    "two explorers": lambda: ConsensusAgent(MEMBERS_ALL, [EXPLORER, EXPLORER], SPEC, ConsensusConfig(turn=3), 4),
    "policy": lambda: PolicyAgent(EXPLORER, 4, spec=SPEC),
    "uniform": lambda: UniformAgent(5, 4),
    "consensus": lambda: ConsensusAgent(MEMBERS_ALL, EXPLORER, SPEC, ConsensusConfig(min_agree=5, once=True), 4),
}


@pytest.mark.parametrize("kind", AGENTS)
def test_predict_matches_act_and_continues_from_any_state(kind: str) -> None:
    env = make_env("minimaze", levels=50, num_envs=6, seed=1, **MAZES)
    actor, predictor, state, states, shown = AGENTS[kind](), AGENTS[kind](), None, [], []
    for _ in range(40):
        seen = env.observe()
        shown.append((seen.obs.copy(), seen.first.copy()))
        states.append(state)
        action, state = predictor.predict(seen.obs, state, seen.first)
        np.testing.assert_array_equal(action, actor.act(seen.obs, seen.first))
        states[-1] = states[-1], action
        env.act(action)
    for (obs, first), (state, action) in [*zip(shown, states)][::-1]:  # backwards: each state is complete
        np.testing.assert_array_equal(predictor.predict(obs, state, first)[0], action)


def test_predict_of_single_observation_returns_single_action() -> None:
    agent = PolicyAgent(EXPLORER, 4, spec=SPEC)
    action, state = agent.predict(FRAME[0])
    assert action.shape == () and 0 <= action < 5
    assert agent.predict(FRAME[0], state, np.array([False]))[0].shape == () and "AgentState(PolicyAgent" in repr(state)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"deterministic": True}, "deterministic is True; accepted: False, because agents sample"),
        (
            {"obs": FRAME.astype(np.float32)},
            r"obs is float32 of shape \(2, 7, 7, 3\); accepted: uint8 of shape \(N, 7",
        ),
        ({"obs": FRAME[:, :5]}, r"obs is uint8 of shape \(2, 5, 7, 3\)"),
        ({"obs": FRAME.transpose(0, 3, 1, 2)}, r"obs is uint8 of shape \(2, 3, 7, 7\)"),
        ({"obs": 3}, r"obs is int64 of shape \(\)"),
        ({"obs": None}, r"obs is object of shape \(\)"),
        ({"obs": "pixels"}, "obs is <U6"),
        ({"obs": FRAME.astype(np.int64)}, "obs is int64 of shape"),
        ({"obs": FRAME[..., :1]}, r"obs is uint8 of shape \(2, 7, 7, 1\)"),
        ({"obs": FRAME[None]}, r"obs is uint8 of shape \(1, 2, 7, 7, 3\)"),
        ({"state": 0}, "state is int; accepted: None, or the state that predict returned"),
        ({"state": np.zeros(4)}, "state is ndarray; accepted: None, or the state that predict returned"),
        ({"state": {}, "episode_start": None}, "state is dict; accepted: None"),
        ({"deterministic": 1}, "deterministic is 1; accepted: False"),
        ({"state": "start"}, "state is str; accepted: None, or the state that predict returned"),
        ({"state": (1, 2), "episode_start": FIRST}, "state is tuple; accepted: None"),
        ({"state": "", "episode_start": FIRST[:1]}, r"episode_start has shape \(1,\); accepted: \(2,\)"),
        ({"episode_start": [True]}, r"episode_start has shape \(1,\); accepted: \(2,\)"),
        ({"episode_start": ["yes", "no"]}, r"episode_start is \['yes', 'no'\]; accepted: 2 booleans"),
        ({"episode_start": [0.5, 1.0]}, r"episode_start is \[0.5, 1.0\]; accepted: 2 booleans"),
        ({"episode_start": [[True], [True, False]]}, "episode_start is .*; accepted: 2 booleans"),
        ({"deterministic": FIRST}, r"deterministic is array\(\[.*; accepted: False"),
        ({"obs": [[1], [1, 2]]}, r"obs is \[\[1\], \[1, 2\]\]; accepted: uint8 of shape \(N, 7, 7, 3\)"),
    ],
)
def test_predict_rejects_invalid_arguments(how: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        PolicyAgent(EXPLORER, 4, spec=SPEC).predict(**{"obs": FRAME, **how})
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("other", [kind for kind in AGENTS if kind != "policy"])
def test_predict_rejects_state_of_another_agent(other: str) -> None:
    _, state = AGENTS[other]().predict(FRAME)
    with pytest.raises(InputError, match=r"state belongs to .* in 2 environments; accepted: a state of PolicyAgent"):
        AGENTS["policy"]().predict(FRAME, state)
    with pytest.raises(InputError, match=r"state belongs to .* in 2 environments; accepted: a state of .* in 1 env"):
        AGENTS[other]().predict(FRAME[:1], state)


@pytest.mark.parametrize("obs", [3, None, "pixels", [[1], [1, 2]]])
def test_predict_without_spec_rejects_observations_that_are_not_arrays(obs: Any) -> None:
    with pytest.raises(InputError, match=r"obs is .*; accepted: an array \[N, …\]"):
        UniformAgent(5).predict(obs)


def test_reprs_of_agents_are_short() -> None:
    assert repr(AGENTS["policy"]()) == "PolicyAgent(minimaze, with memory, on cpu)"
    assert repr(AGENTS["uniform"]()) == "UniformAgent(5 actions)"
    assert repr(AGENTS["consensus"]()) == "ConsensusAgent(minimaze, 5 members, 5 must agree, else explorer)"
