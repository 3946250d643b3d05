"""Stable-Baselines3 models as members and explorers, and our agents in its evaluation."""

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

sb3 = pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is missing: pip install 'expgen[sb3]'")

from stable_baselines3.common.evaluation import evaluate_policy  # noqa: E402

import expgen  # noqa: E402
from expgen.agents.external import consensus_agent  # noqa: E402
from expgen.agents.sb3 import from_sb3  # noqa: E402
from expgen.envs.make import make_env  # noqa: E402
from expgen.errors import InputError  # noqa: E402
from tests.agents.test_consensus import EXPLORER, MAZES, MEMBERS_ALL, SPEC  # noqa: E402


def model(kind: str = "PPO", seed: int = 0) -> Any:
    env = expgen.Sb3VecEnv("minimaze", 2, levels=5, **MAZES)
    return getattr(sb3, kind)("MlpPolicy", env, seed=seed, device="cpu")


def test_sb3_model_votes_with_its_own_distribution() -> None:
    own = model()
    obs = np.random.default_rng(0).integers(0, 256, (2, 7, 7, 3), dtype=np.uint8)
    logits = from_sb3(own)(obs)
    tensor, _ = own.policy.obs_to_tensor(obs)
    torch.testing.assert_close(logits, own.policy.get_distribution(tensor).distribution.logits)
    assert repr(from_sb3(own)) == "Sb3Policy(ActorCriticPolicy, 5 actions)"


def test_sb3_models_of_all_types_form_an_agent() -> None:
    models = [model(seed=1), model("A2C", 2).policy, from_sb3(model("DQN", 3))]
    agent = consensus_agent(models, model(seed=4), SPEC, min_agree=2)
    assert expgen.evaluate(agent, make_env("minimaze", levels=9, num_envs=4, **MAZES), 20).mean_return >= 0


def test_sb3_evaluate_policy_plays_our_agent() -> None:
    agent = consensus_agent(MEMBERS_ALL, EXPLORER, SPEC)
    env = expgen.Sb3VecEnv("minimaze", 4, levels=9, **MAZES)
    mean, _ = evaluate_policy(agent, env, 40, deterministic=False, warn=False)
    assert 0 < mean <= 10


class Game(gymnasium.Env):
    """An environment whose episodes end at once; `seen` and `actions` are its spaces."""

    def __init__(self, seen: gymnasium.Space, actions: gymnasium.Space) -> None:
        self.observation_space, self.action_space = seen, actions


def trained_on(seen: gymnasium.Space, actions: gymnasium.Space, policy: str = "MlpPolicy") -> Any:
    return sb3.PPO(policy, Game(seen, actions), device="cpu")


VECTOR, FIVE = spaces.Box(0, 1, (3,)), spaces.Discrete(5)
NO_MODEL = "; accepted: a model of Stable-Baselines3, such as PPO.load"
NO_ACTIONS = "; accepted: Discrete actions that start at 0"
NO_BOX = "; accepted: a Box of images or vectors"


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda own: from_sb3("ppo.zip"), "model is 'ppo.zip'" + NO_MODEL),
        (lambda own: from_sb3(None), "model is None" + NO_MODEL),
        (lambda own: from_sb3(MEMBERS_ALL[0]), "model is .*" + NO_MODEL),
        (lambda own: from_sb3(sb3.PPO), "model is <class .*PPO'>" + NO_MODEL),
        (lambda own: from_sb3([own]), "model is .*" + NO_MODEL),
        (lambda own: from_sb3(own.predict), "model is a method" + NO_MODEL),
        (lambda own: from_sb3(own.policy.state_dict()), "model is a OrderedDict" + NO_MODEL),
        (lambda own: from_sb3(own.policy.mlp_extractor), "model is .*" + NO_MODEL),
        (lambda own: from_sb3(sb3.PPO("MlpPolicy", None, _init_setup_model=False)), "model is .*" + NO_MODEL),
        (lambda own: from_sb3(trained_on(VECTOR, spaces.Box(-2, 2, (1,)))), r"model has actions Box\(.*" + NO_ACTIONS),
        (
            lambda own: from_sb3(trained_on(VECTOR, spaces.MultiDiscrete([2, 3]))),
            "has actions Multi.*" + NO_ACTIONS,
        ),
        (lambda own: from_sb3(trained_on(VECTOR, spaces.MultiBinary(3))), r"has actions MultiBinary\(3\)" + NO_ACTIONS),
        (
            lambda own: from_sb3(trained_on(VECTOR, spaces.Discrete(5, start=1))),
            "has actions Dis.*" + NO_ACTIONS,
        ),
        (
            lambda own: from_sb3(trained_on(spaces.Dict(a=VECTOR), FIVE, "MultiInputPolicy")),
            r"model has observations Dict\(.*" + NO_BOX,
        ),
        (lambda own: from_sb3(trained_on(spaces.Discrete(7), FIVE)), r"has observations Discrete\(7\)" + NO_BOX),
        (
            lambda own: consensus_agent([own], None, gymnasium.make("CartPole-v1"), fallback="random"),
            r"CartPole-v1 has observations \(4,\) and 2 actions; accepted by this model: \(7, 7, 3\) and 5",
        ),
        (
            lambda own: consensus_agent([own, trained_on(VECTOR, FIVE)], own, SPEC),
            r"minimaze has observations \(7, 7, 3\) and 5 actions; accepted by this model: \(3,\) and 5 actions",
        ),
        (
            lambda own: consensus_agent([own], trained_on(VECTOR, FIVE), SPEC),
            r"minimaze has observations \(7, 7, 3\) and 5 actions; accepted by this model: \(3,\) and 5 actions",
        ),
        (lambda own: from_sb3(own)(None), r"obs has shape \(\); accepted: \(N, 7, 7, 3\)"),
        (lambda own: from_sb3(own)(np.zeros((7, 7, 3), np.uint8)), r"obs has shape \(7, 7, 3\); accepted: \(N, 7, 7"),
        (lambda own: from_sb3(model("DQN"))(np.zeros((2, 9))), r"obs has shape \(2, 9\); accepted: \(N, 7, 7, 3\)"),
    ],
)
def test_incompatible_sb3_models_are_rejected(use: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        use(model())
    assert "\n" not in str(refusal.value)


def test_recurrent_sb3_model_can_explore_but_not_vote() -> None:
    contrib = pytest.importorskip("sb3_contrib", reason="sb3-contrib is missing: pip install sb3-contrib")
    env = expgen.Sb3VecEnv("minimaze", 2, levels=5, **MAZES)
    recurrent = contrib.RecurrentPPO("MlpLstmPolicy", env, n_steps=8, batch_size=16, seed=0, device="cpu")
    agent = consensus_agent(MEMBERS_ALL, recurrent, SPEC, min_agree=6)  # impossible quorum: only the explorer acts
    explorer, state = from_sb3(recurrent), None
    for number in range(3):
        obs, first = np.full((2, 7, 7, 3), number * 80, dtype=np.uint8), np.array([number == 0, number != 1])
        torch.manual_seed(number)
        action = agent.act(obs, first)
        torch.manual_seed(number)
        expected, state = recurrent.predict(obs, state, first, deterministic=False)
        np.testing.assert_array_equal(action, expected)
        np.testing.assert_array_equal(agent.fallback.state[0], state[0])  # type: ignore[union-attr]
    more = explorer.act(np.zeros((2, 7, 7, 3), np.uint8), np.ones(2, bool))
    fewer = explorer.act(np.zeros((1, 7, 7, 3), np.uint8), np.ones(1, bool))  # a new batch of environments
    assert (more.shape, fewer.shape) == ((2,), (1,))
    assert repr(explorer) == "Sb3RecurrentAgent(RecurrentActorCriticPolicy, 5 actions)"
    with pytest.raises(InputError, match=r"members\[0\] is Sb3RecurrentAgent.*, which has memory; .* without memory"):
        consensus_agent([recurrent], None, SPEC, fallback="random")
    with pytest.raises(InputError, match=r"CartPole-v1 has observations .*; accepted by this model: \(7, 7, 3\) and 5"):
        consensus_agent([lambda obs: np.zeros(len(obs), int)], recurrent, gymnasium.make("CartPole-v1"))
