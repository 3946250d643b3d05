"""Stable-Baselines3 models as members and explorers; the package is not imported, models are duck-typed."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy import ndarray

from expgen.agents.predict import PredictMixin
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.text import short_repr


def is_sb3(model: Any) -> bool:
    """Return whether `model` is a model of Stable-Baselines3 or the policy of one."""
    policy = getattr(model, "policy", model)
    return all(hasattr(policy, name) for name in ("obs_to_tensor", "set_training_mode", "action_space", "predict"))


def from_sb3(model: Any) -> "Sb3Policy | Sb3RecurrentAgent":
    """Wrap a model of Stable-Baselines3 (or its `policy`) as a member or explorer of a consensus agent.

    Actions of stochastic policies (PPO, A2C, …) are sampled; DQN takes its best action. A recurrent policy has memory,
    so it can only be the explorer.
    """
    if not is_sb3(model):
        raise InputError(f"model is {short_repr(model)}; accepted: a model of Stable-Baselines3, such as PPO.load")
    policy = getattr(model, "policy", model)
    observations, actions = policy.observation_space, policy.action_space
    if not isinstance(actions, Discrete) or actions.start != 0:
        raise InputError(f"model has actions {actions}; accepted: Discrete actions that start at 0")
    if not isinstance(observations, Box):
        raise InputError(f"model has observations {short_repr(observations)}; accepted: a Box of images or vectors")
    return Sb3RecurrentAgent(policy) if hasattr(policy, "lstm_actor") else Sb3Policy(policy)


class Sb3Policy:
    """Observations `[N, …]` (images `[N, H, W, C]`) → logits `[N, A]`, or actions `[N]` if the policy has no logits."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy

    def __repr__(self) -> str:
        return f"Sb3Policy({type(self.policy).__name__}, {self.policy.action_space.n} actions)"

    def __call__(self, obs: ndarray) -> Any:
        if np.shape(obs)[1:] not in _shapes(self.policy):
            accepted = f"(N, {', '.join(map(str, _shapes(self.policy)[-1]))})"
            raise InputError(f"obs has shape {np.shape(obs)}; accepted: {accepted}")
        if not hasattr(self.policy, "get_distribution"):
            return self.policy.predict(obs, deterministic=True)[0]
        self.policy.set_training_mode(False)
        tensor, _ = self.policy.obs_to_tensor(obs)
        return self.policy.get_distribution(tensor).distribution.logits


class Sb3RecurrentAgent(PredictMixin):
    """A recurrent policy of sb3-contrib; `state` is its memory."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.state: Any = None  # arrays [layers, N, S]

    def __repr__(self) -> str:
        return f"Sb3RecurrentAgent({type(self.policy).__name__}, {self.policy.action_space.n} actions)"

    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        if self.state is not None and self.state[0].shape[1] != len(first):  # a new batch of environments
            self.state = None
        action, self.state = self.policy.predict(obs, self.state, np.asarray(first), deterministic=False)
        return np.asarray(action, dtype=np.int32)


def check_fits(player: Sb3Policy | Sb3RecurrentAgent, spec: EnvSpec) -> None:
    """Raise InputError if `player` has other observations or actions than `spec`."""
    shapes, actions = _shapes(player.policy), int(player.policy.action_space.n)
    if spec.obs_shape not in shapes or spec.num_actions != actions:
        problem = f"{spec.name} has observations {spec.obs_shape} and {spec.num_actions} actions"
        raise InputError(f"{problem}; accepted by this model: {shapes[-1]} and {actions} actions")


def _shapes(policy: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of an observation as the policy declares it, and the same with channels last."""
    shape = tuple(policy.observation_space.shape)
    return shape, (*shape[1:], shape[0]) if len(shape) == 3 else shape
