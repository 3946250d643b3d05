"""Policies that Stable-Baselines3 trained, as members and explorers of ours: `from_sb3(PPO.load(file))`.

Nothing of Stable-Baselines3 is imported: its models are told by what they have.
"""

from typing import Any

import numpy as np
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
    if not hasattr(policy.action_space, "n") or getattr(policy.action_space, "start", 0) != 0:
        raise InputError(f"model has actions {policy.action_space}; accepted: Discrete actions that begin with 0")
    return Sb3RecurrentAgent(policy) if hasattr(policy, "lstm_actor") else Sb3Policy(policy)


class Sb3Policy:
    """Observations `[N, …]`, pictures height first → logits `[N, A]`, or actions `[N]` where the policy has none."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy

    def __repr__(self) -> str:
        return f"Sb3Policy({type(self.policy).__name__}, {self.policy.action_space.n} actions)"

    def __call__(self, obs: ndarray) -> Any:
        if not hasattr(self.policy, "get_distribution"):
            return self.policy.predict(obs, deterministic=True)[0]
        self.policy.set_training_mode(False)
        tensor, _ = self.policy.obs_to_tensor(obs)
        return self.policy.get_distribution(tensor).distribution.logits

    def check(self, spec: EnvSpec) -> None:
        """An InputError where it was made for other observations or actions than those of `spec`."""
        shape, actions = tuple(self.policy.observation_space.shape), int(self.policy.action_space.n)
        transposed = (*shape[1:], shape[0]) if len(shape) == 3 else shape
        if spec.obs_shape not in (shape, transposed) or spec.num_actions != actions:
            where = f"{spec.name} has observations {spec.obs_shape} and {spec.num_actions} actions"
            raise InputError(f"{where}; accepted by this model: {transposed} and {actions} actions")


class Sb3RecurrentAgent(Predicts):
    """A recurrent policy of Stable-Baselines3's contributions; `state` is what it remembers."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.state = policy, None

    def __repr__(self) -> str:
        return f"Sb3RecurrentAgent({type(self.policy).__name__}, {self.policy.action_space.n} actions)"

    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        action, self.state = self.policy.predict(obs, self.state, np.asarray(first), deterministic=False)
        return np.asarray(action, dtype=np.int32)
