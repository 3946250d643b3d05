"""Policies that Stable-Baselines3 trained, as members and explorers of ours: `from_sb3(PPO.load(file))`.

Nothing of Stable-Baselines3 is imported: its models are told by what they have.
"""

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy import ndarray

from expgen.agents.predict import Predicts
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.text import short_repr


def is_sb3(thing: Any) -> bool:
    """Whether `thing` is a model of Stable-Baselines3, or the policy of one."""
    policy = getattr(thing, "policy", thing)
    return all(hasattr(policy, name) for name in ("obs_to_tensor", "set_training_mode", "action_space", "predict"))


def from_sb3(model: Any) -> "Sb3Policy | Sb3RecurrentAgent":
    """A model of Stable-Baselines3 (or its `policy`) as a member of a consensus agent, or as its explorer.

    What samples its actions (PPO, A2C, …) does so here too; what does not (DQN) plays its best action. A recurrent
    policy remembers, so it can be the explorer only.
    """
    if not is_sb3(model):
        raise InputError(f"model is {short_repr(model)}; accepted: a model of Stable-Baselines3, as PPO.load makes")
    policy = getattr(model, "policy", model)
    seen, actions = policy.observation_space, policy.action_space
    if not isinstance(actions, Discrete) or actions.start != 0:
        raise InputError(f"model has actions {actions}; accepted: Discrete actions that begin with 0")
    if not isinstance(seen, Box):
        raise InputError(f"model has observations {short_repr(seen)}; accepted: a Box of pictures or vectors")
    return Sb3RecurrentAgent(policy) if hasattr(policy, "lstm_actor") else Sb3Policy(policy)


class Sb3Policy:
    """Observations `[N, …]`, pictures height first → logits `[N, A]`, or actions `[N]` where the policy has none."""

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


class Sb3RecurrentAgent(Predicts):
    """A recurrent policy of Stable-Baselines3's contributions; `state` is what it remembers."""

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
    """An InputError where `player` was made for other observations or actions than those of `spec`."""
    shapes, actions = _shapes(player.policy), int(player.policy.action_space.n)
    if spec.obs_shape not in shapes or spec.num_actions != actions:
        where = f"{spec.name} has observations {spec.obs_shape} and {spec.num_actions} actions"
        raise InputError(f"{where}; accepted by this model: {shapes[-1]} and {actions} actions")


def _shapes(policy: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of an observation, as the policy has it and with its channels last."""
    shape = tuple(policy.observation_space.shape)
    return shape, (*shape[1:], shape[0]) if len(shape) == 3 else shape
