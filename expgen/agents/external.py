"""The consensus agent over external policies: callables, torch modules, Stable-Baselines3 models, other agents.

A member must have no memory and can be
- a callable from observations `[N, …]` (an array) to logits `[N, A]`, from which we sample, or to actions `[N]`;
- a torch module that does the same with tensors;
- a model of Stable-Baselines3, or the result of `from_sb3`;
- one of our policies, or an agent of one policy that `load_agent` returned.

An explorer can be any of these or an agent with memory (`act(obs, first, episode)`), for example from `load_agent`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from expgen.agents.agent import Agent, PolicyAgent, check_compatible
from expgen.agents.consensus import ConsensusAgent, ConsensusConfig
from expgen.agents.sb3 import Sb3Policy, Sb3RecurrentAgent, check_fits, from_sb3, is_sb3
from expgen.agents.vote_kinds import changed_consensus
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import Policy, PolicyOutput
from expgen.settings import LAST_SEED, check_integer, to_python_number
from expgen.text import short_repr


def consensus_agent(
    members: Sequence[Any], explorer: Any = None, env: Any = None, seed: int = 0, **settings: Any
) -> ConsensusAgent:
    """Return the ExpGen agent (Algorithm 1) over policies from any source.

    members: the policies that vote, usually two or more; the module docstring lists the accepted types.
    explorer: acts when the members disagree; a list takes turns. None requires `fallback="random"` or `"none"`.
    env: the environment to play, one of ours or of Gymnasium's; it determines the number of actions.
    seed: random seed for sampling actions.
    settings: fields of ConsensusConfig (`min_agree`, `alpha`, `vote`, `leader`, `once`, …).
    """
    spec = spec_of(env)
    if isinstance(members, (str, bytes)) or not isinstance(members, Sequence):
        raise InputError(f"members is {short_repr(members)}; accepted: a list of policies")
    seed = check_integer("seed", seed, 0, LAST_SEED)
    policies = [_policy(member, spec, f"members[{index}]", allow_memory=False) for index, member in enumerate(members)]
    plain = {name: to_python_number(value) for name, value in settings.items()}
    config = changed_consensus(ConsensusConfig(), plain, max(1, len(policies)))
    size = config.ensemble_size or len(policies)
    return ConsensusAgent(policies[:size], _explorer(explorer, spec), spec, config, seed)


class ExternalPolicy(nn.Module):
    """Wraps a callable as a Policy without memory; `what` names it in errors."""

    state_size = 0

    def __init__(self, function: Callable[[Any], Any], num_actions: int, what: str) -> None:
        super().__init__()
        self._function = (function,)  # in a tuple, so that a module is not registered as a submodule
        self.num_actions, self.what = num_actions, what

    def forward(self, obs: Tensor, first: Tensor, state: Tensor) -> PolicyOutput:
        """`obs` `[1, N, …]` → logits `[1, N, A]`; the values are 0."""
        (function,) = self._function
        argument = obs[0] if isinstance(function, nn.Module) else obs[0].cpu().numpy()
        logits = self._logits(torch.as_tensor(function(argument)).detach(), len(obs[0])).to(obs.device)
        return PolicyOutput(logits[None], torch.zeros_like(first, dtype=torch.float32), state)

    def _logits(self, result: Tensor, num_envs: int) -> Tensor:
        """Return logits `[N, A]`; actions `[N]` become 0 for the chosen action and −∞ for the others."""
        if result.shape == (num_envs,) and not result.is_floating_point():
            if ((result < 0) | (result >= self.num_actions)).any():
                raise InputError(f"{self.what} chose {result.tolist()}; accepted: actions 0 to {self.num_actions - 1}")
            logits = torch.full((num_envs, self.num_actions), -torch.inf)
            return logits.scatter_(1, result.long()[:, None], 0.0)
        if result.shape != (num_envs, self.num_actions) or not result.is_floating_point():
            what = f"{self.what} returned {result.dtype} of shape {tuple(result.shape)}"
            accepted = f"logits ({num_envs}, {self.num_actions}), or actions ({num_envs},) as whole numbers"
            raise InputError(f"{what}; accepted: {accepted}")
        if result.isnan().any():
            raise InputError(f"{self.what} returned NaN logits; accepted: numbers")
        return result.float()


def spec_of(env: Any) -> EnvSpec:
    """Return the EnvSpec of `env`: one of our environments, a (vector) environment of Gymnasium, or an EnvSpec."""
    for spec in (env, getattr(env, "spec", None), getattr(getattr(env, "games", None), "spec", None)):
        if isinstance(spec, EnvSpec):
            return spec
    observations = getattr(env, "single_observation_space", None) or getattr(env, "observation_space", None)
    actions = getattr(env, "single_action_space", None) or getattr(env, "action_space", None)
    if observations is None or actions is None:
        raise InputError(f"env is {short_repr(env)}; accepted: an environment from make_env or Gymnasium")
    if not hasattr(actions, "n") or getattr(actions, "start", 0) != 0:
        raise InputError(f"env has actions {actions}; accepted: Discrete actions that start at 0")
    if observations.shape is None:
        raise InputError(f"env has observations {short_repr(observations)}; accepted: a Box of images or vectors")
    dtype = "uint8" if observations.dtype == np.uint8 else "float32"
    name = getattr(getattr(env, "spec", None), "id", type(env).__name__)
    return EnvSpec(f"gymnasium:{name}", tuple(observations.shape), dtype, int(actions.n))


def _checked(model: Any, spec: EnvSpec) -> Any:
    """Convert a Stable-Baselines3 model; raise InputError if `model` does not fit `spec`."""
    if is_sb3(model):
        model = from_sb3(model)
    if isinstance(model, (Sb3Policy, Sb3RecurrentAgent)):
        check_fits(model, spec)
    check_compatible(model, spec)
    return model


def _policy(model: Any, spec: EnvSpec, what: str, allow_memory: bool) -> Policy:
    """Return `model` as a Policy, wrapped if needed; `what` names it in errors."""
    model = _checked(model, spec)
    if isinstance(model, PolicyAgent):
        model = model.policy
    if (getattr(model, "state_size", 0) and not allow_memory) or callable(getattr(model, "act", None)):
        accepted = "policies, not agents" if allow_memory else "policies without memory"
        raise InputError(f"{what} is {short_repr(model)}, which has memory; accepted: {accepted}")
    if isinstance(model, nn.Module) and hasattr(model, "state_size"):
        return model  # type: ignore[return-value]
    if not callable(model) or isinstance(model, type):
        accepted = "a function from observations to logits, a policy or a model"
        raise InputError(f"{what} is {short_repr(model)}; accepted: {accepted}")
    return ExternalPolicy(model, spec.num_actions, what)  # type: ignore[return-value]


def _explorer(model: Any, spec: EnvSpec) -> Policy | Agent | list[Policy] | None:
    if model is None:
        return None
    if isinstance(model, (list, tuple)):
        return [_policy(each, spec, f"explorer[{index}]", allow_memory=True) for index, each in enumerate(model)]
    model = _checked(model, spec)
    if callable(getattr(model, "act", None)):
        return model
    return _policy(model, spec, "explorer", allow_memory=True)
