"""The consensus agent over anybody's policies: callables, torch modules, Stable-Baselines3 models, other agents.

A member is asked about frames that need no memory, and any of these will do:
- a callable: observations `[N, …]` (an array) → logits `[N, A]`, from which we sample, or actions `[N]`;
- a torch module that is called with the same as a tensor;
- a model of Stable-Baselines3, or what `from_sb3` makes of it;
- a policy of ours, or an agent that `load_agent` made of one.

An explorer may be one too, or anything that remembers: an agent (`act(obs, first, episode)`), as `load_agent` makes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from expgen.agents.agent import Agent, PolicyAgent, check_made_for
from expgen.agents.consensus import ConsensusAgent, ConsensusConfig, changed_consensus
from expgen.agents.sb3 import Sb3Policy, Sb3RecurrentAgent, check_fits, from_sb3, is_sb3
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import Policy, PolicyOutput
from expgen.settings import LAST_SEED, check_integer, to_python_number
from expgen.text import short_repr


def consensus_agent(
    members: Sequence[Any], explorer: Any = None, env: Any = None, seed: int = 0, **settings: Any
) -> ConsensusAgent:
    """The ExpGen agent (Algorithm 1) over policies trained anywhere.

    members: who votes, two or more make sense; each as this module's docstring says.
    explorer: who acts where they do not agree, or a list of policies that take turns; None needs `fallback="random"`
        or `"none"` among `settings`.
    env: where it will play, one of our environments or of Gymnasium's: it says how many actions there are.
    seed: of the actions that are sampled.
    settings: fields of ConsensusConfig (`min_agree`, `alpha`, `vote`, `leader`, `once`, …).
    """
    spec = spec_of(env)
    if isinstance(members, (str, bytes)) or not isinstance(members, Sequence):
        raise InputError(f"members is {short_repr(members)}; accepted: a list of policies")
    seed = check_integer("seed", seed, 0, LAST_SEED)
    policies = [_policy(member, spec, f"members[{index}]", may_remember=False) for index, member in enumerate(members)]
    plain = {name: to_python_number(value) for name, value in settings.items()}
    config = changed_consensus(ConsensusConfig(), plain, max(1, len(policies)))
    size = config.ensemble_size or len(policies)
    return ConsensusAgent(policies[:size], _explorer(explorer, spec), spec, config, seed)


class OutsidePolicy(nn.Module):
    """Called like a Policy without memory; `what` names it in errors."""

    state_size = 0

    def __init__(self, ask: Callable[[Any], Any], num_actions: int, what: str) -> None:
        super().__init__()
        self._ask = (ask,)  # in a tuple: a module in there is no part of this one
        self.num_actions, self.what = num_actions, what

    def forward(self, obs: Tensor, first: Tensor, state: Tensor) -> PolicyOutput:
        """`obs` `[1, N, …]` → logits `[1, N, A]`; it has no values."""
        (ask,) = self._ask
        seen = obs[0] if isinstance(ask, nn.Module) else obs[0].cpu().numpy()
        logits = self._logits(torch.as_tensor(ask(seen)).detach(), len(obs[0])).to(obs.device)
        return PolicyOutput(logits[None], torch.zeros_like(first, dtype=torch.float32), state)

    def _logits(self, answer: Tensor, num_envs: int) -> Tensor:
        """`[N, A]`: of actions `[N]`, 0 for the one and −∞ for the others."""
        if answer.shape == (num_envs,) and not answer.is_floating_point():
            if ((answer < 0) | (answer >= self.num_actions)).any():
                raise InputError(f"{self.what} chose {answer.tolist()}; accepted: actions 0 to {self.num_actions - 1}")
            logits = torch.full((num_envs, self.num_actions), -torch.inf)
            return logits.scatter_(1, answer.long()[:, None], 0.0)
        if answer.shape != (num_envs, self.num_actions) or not answer.is_floating_point():
            what = f"{self.what} answered {answer.dtype} of shape {tuple(answer.shape)}"
            accepted = f"logits ({num_envs}, {self.num_actions}), or actions ({num_envs},) as whole numbers"
            raise InputError(f"{what}; accepted: {accepted}")
        if answer.isnan().any():
            raise InputError(f"{self.what} answered logits that are not numbers (NaN); accepted: numbers")
        return answer.float()


def spec_of(env: Any) -> EnvSpec:
    """What a network must know of `env`: one of our environments, of Gymnasium's, one or many, or a spec itself."""
    for of in (env, getattr(env, "spec", None), getattr(getattr(env, "games", None), "spec", None)):
        if isinstance(of, EnvSpec):
            return of
    seen = getattr(env, "single_observation_space", None) or getattr(env, "observation_space", None)
    actions = getattr(env, "single_action_space", None) or getattr(env, "action_space", None)
    if seen is None or actions is None:
        raise InputError(f"env is {short_repr(env)}; accepted: an environment, as make_env or Gymnasium makes")
    if not hasattr(actions, "n") or getattr(actions, "start", 0) != 0:
        raise InputError(f"env has actions {actions}; accepted: Discrete actions that begin with 0")
    if seen.shape is None:
        raise InputError(f"env has observations {short_repr(seen)}; accepted: a Box of pictures or vectors")
    dtype = "uint8" if seen.dtype == np.uint8 else "float32"
    name = getattr(getattr(env, "spec", None), "id", type(env).__name__)
    return EnvSpec(f"gymnasium:{name}", tuple(seen.shape), dtype, int(actions.n))


def _policy(thing: Any, spec: EnvSpec, what: str, may_remember: bool) -> Policy:
    """`thing` as something that is called like a Policy; `what` names it in errors."""
    check_made_for(thing, spec)
    if isinstance(thing, PolicyAgent):
        thing = thing.policy
    if is_sb3(thing):
        thing = from_sb3(thing)
    if (getattr(thing, "state_size", 0) and not may_remember) or callable(getattr(thing, "act", None)):
        accepted = "policies, not agents" if may_remember else "policies without memory"
        raise InputError(f"{what} is {short_repr(thing)}, which remembers; accepted: {accepted}")
    if isinstance(thing, nn.Module) and hasattr(thing, "state_size"):
        return thing  # type: ignore[return-value]
    if isinstance(thing, Sb3Policy):
        check_fits(thing, spec)
    if not callable(thing) or isinstance(thing, type):
        raise InputError(f"{what} is {short_repr(thing)}; accepted: a function obs → logits, a policy or a model")
    return OutsidePolicy(thing, spec.num_actions, what)  # type: ignore[return-value]


def _explorer(thing: Any, spec: EnvSpec) -> Policy | Agent | list[Policy] | None:
    if thing is None:
        return None
    if isinstance(thing, (list, tuple)):
        return [_policy(each, spec, f"explorer[{index}]", may_remember=True) for index, each in enumerate(thing)]
    if is_sb3(thing):
        thing = from_sb3(thing)
    if isinstance(thing, Sb3RecurrentAgent):
        check_fits(thing, spec)
    if callable(getattr(thing, "act", None)):
        check_made_for(thing, spec)
        return thing
    return _policy(thing, spec, "explorer", may_remember=True)
