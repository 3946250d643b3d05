"""The ExpGen agent (Algorithm 1): take the leader's action if the ensemble agrees with it, otherwise explore.

At each step, independently in every environment:

1. The explorer π_H sees the frame at every step, so that its memory is h_t. Every member samples a_j ~ π_r^j(·|o_t),
   except while a stretch of exploration lasts, when no vote is taken. Members whose vote can no longer change the
   decision are skipped where that saves time (agents.ensemble).
2. The leader's a_i is in consensus if at least `min_agree` members, the leader included, agree with it (agents.vote).
3. In consensus a_i is executed. Otherwise n_{π_H} is drawn and the explorer acts for n_{π_H} steps in a row.

Where the paper leaves a choice open or its code differs, we follow the code that produced its scores:
- n_{π_H} is drawn once per stretch; the pseudo-code redraws it at every exploring step.
- n_{π_H} ∈ {1, 2, …} comes from the code's table, which approximates Geom(½) with a longer tail.
- n_{π_H} = 0 at the start of an episode (as in the pseudo-code; the code carries it over).
- The leader is one fixed member, and its *own sampled* action is executed.

Three settings go beyond Algorithm 1 and are off by default:
- `vote="majority"`: the vote is on the action that most members agree with instead of the leader's (agents.vote).
- `once`: the ensemble acts on a frame at most once per episode. Agreement on a frame on which it acted before did not
  lead anywhere new, so it counts as disagreement. Frames on which the explorer acted do not matter.
- `hedge`: the explorer avoids actions to which a quorum of members objects (agents.hedge). Every member is then
  evaluated at exploring steps too.
With `vote="turns"` or `"mean"` there is no vote but another agent (agents.vote_kinds).

With these settings off, a quorum of 1 plays exactly like `PolicyAgent(members[leader], seed)`, and a quorum larger than
the ensemble exactly like `PolicyAgent(explorer, seed)` for an explorer with memory: each policy has its own random
stream (expgen.random).
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy import ndarray
from torch import nn

from expgen.agents.acted_frames import EpisodeFrames
from expgen.agents.agent import Agent, UniformAgent, explorers_agent
from expgen.agents.decision import Actor, Counts, Decision
from expgen.agents.ensemble import Ensemble, Poll
from expgen.agents.hedge import bad_actions, hedged_action
from expgen.agents.predict import PredictMixin
from expgen.agents.quorum import majority
from expgen.agents.vote import Agreement, Panel, VoteRule, classes_of, full_panel
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import Policy
from expgen.random import MEMBERS, MEMORYLESS, STRETCH, EpisodeClock, stream_seed, uniform_noise
from expgen.settings import check_config, later_setting, setting

STRETCH_TABLE = (0.55, 0.25, *(0.025,) * 8)  # P(n = 1), P(n = 2), … in the paper's code; mean 2.35
TABLE_ALPHA = 0.5  # the α that the table approximates


@dataclass(frozen=True)
class ConsensusConfig:
    """How members vote and when the explorer acts; which settings a `vote` uses is in agents.vote_kinds."""

    ensemble_size: int = setting(0, "number of members that vote, the first ones; 0: all", low=0)
    leader: int = setting(0, "member whose action is executed if enough agree; breaks ties of --vote majority", low=0)
    min_agree: int = setting(0, "quorum: number of members that must agree on an action; 0: more than half", low=0)
    agreement: Literal["direction", "action"] = setting(
        "direction", "what must be equal: the direction of movement (class of the action) or the action itself"
    )
    alpha: float = setting(
        TABLE_ALPHA, "α of the exploration length; any value but 0.5 implies --stretch geometric", low=1e-3, high=1
    )
    stretch: Literal["table", "geometric"] = setting(
        "table", "distribution of the exploration length: table of the paper's code for α = 0.5, or Geom(α) on 1, 2, …"
    )
    fallback: Literal["explorer", "random", "none"] = setting(
        "explorer", "who acts without agreement: the explorer, uniformly random actions, or (none) the leader"
    )
    no_op_is_up: bool = setting(False, "as in the paper's code, count a no-op of the leader as a move up")
    vote: Literal["leader", "majority", "turns", "mean"] = later_setting(
        "leader",
        "vote on the leader's action or the most common one; turns: no vote, policies act --turn steps each; "
        "mean: no vote, actions are sampled from the mean of the members' log-probabilities",
    )
    once: bool = later_setting(False, "explore if the ensemble agrees on a frame on which it acted in this episode")
    turn: int = later_setting(
        50, "steps per turn, with several explorers or --vote turns; 1: draw a policy at every step", low=1, high=10**9
    )
    patience: int = later_setting(
        0, "with --vote turns: number of first steps of an episode in which only members act; 0: none", low=0
    )
    hedge: float = later_setting(
        0.0,
        "the explorer avoids actions to which a quorum of members gives less than this fraction of the probability of "
        "their most likely action (for example 0.05); 0: off. All members are then evaluated at every step",
        low=0,
        high=1,
    )

    @property
    def is_geometric(self) -> bool:
        """Whether stretch lengths are Geom(α): requested, or α is not the one of the table."""
        return self.stretch == "geometric" or self.alpha != TABLE_ALPHA

    def quorum(self, num_members: int) -> int:
        """Return how many members must agree; a number above `num_members` can never be reached."""
        return self.min_agree or majority(num_members)


CONSENSUS_SETTINGS = tuple(field.name for field in dataclasses.fields(ConsensusConfig))


def stretch_length(uniform: ndarray, config: ConsensusConfig) -> ndarray:
    """Sample n_{π_H} ∈ {1, 2, …} by inverse transform of numbers in (0, 1), `[N]` → `[N]`."""
    if not config.is_geometric:
        return 1 + np.searchsorted(np.cumsum(STRETCH_TABLE[:-1]), uniform, side="right")
    if config.alpha == 1:
        return np.ones(len(uniform), dtype=np.int64)
    return 1 + (np.log(uniform) / math.log1p(-config.alpha)).astype(np.int64)  # P(n > j) = (1 − α)^j


class ConsensusAgent(PredictMixin):
    """Executes the ensemble's action if enough members agree, otherwise explores.

    After `act`, `decision` describes the step; `tally` accumulates counts over all steps. With `fallback="none"` the
    leader acts without consensus; votes are still taken and counted. `explorer` may be None unless the fallback is
    "explorer"; several explorers take turns. `panels` returns the voters of environments `[n]`, by default all members.
    """

    def __init__(
        self,
        members: Sequence[Policy],
        explorer: Policy | Sequence[Policy] | Agent | None,
        spec: EnvSpec,
        config: ConsensusConfig,
        seed: int = 0,
        panels: Callable[[ndarray], Panel] | None = None,
    ) -> None:
        check_config(config)
        if config.vote != "leader" and config.vote != "majority":
            raise InputError(f"--vote is {config.vote}; accepted by ConsensusAgent: leader, majority")
        self.ensemble, self.config, self.seed, self.spec = Ensemble(members), config, seed, spec
        if config.leader >= len(members):
            raise InputError(f"--leader is {config.leader}; accepted: 0 to {len(members) - 1}")
        self.quorum = config.quorum(len(members))
        self.panels = panels or partial(full_panel, len(members), config.leader, self.quorum)
        classes = classes_of(spec) if config.agreement == "direction" else None
        self.agreement = Agreement(spec.num_actions, classes, config.no_op_is_up)
        self.rule = VoteRule(self.agreement, config.vote)
        self.acted_frames = EpisodeFrames() if config.once else None
        self.fallback = _fallback_agent(config, explorer, spec, seed)
        if config.hedge and not hasattr(self.fallback, "noisy_logits"):
            fallback = "an explorer without logits" if config.fallback == "explorer" else config.fallback
            problem = f"--hedge is {config.hedge} but --fallback is {fallback}"
            raise InputError(f"{problem}; accepted: 0, or a policy as explorer")
        self.fallback_actor = Actor.RANDOM if config.fallback == "random" else Actor.EXPLORER
        streams = [MEMORYLESS if j == config.leader else MEMBERS + j for j in range(len(members))]
        seeds = [stream_seed(seed, stream) for stream in streams]
        self.poll = Poll(self.ensemble, self.rule, seeds, spec.num_actions)
        self.clock = EpisodeClock()
        self.explore_steps = np.zeros(0, dtype=np.int64)  # [N] n_{π_H}: remaining steps of the stretch
        self.decision: Decision | None = None
        self.tally = Counts()

    def __repr__(self) -> str:
        rule = f"{len(self.ensemble.members)} members, {self.quorum} must agree, else {self.config.fallback}"
        return f"ConsensusAgent({self.spec.name}, {rule})"

    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        self.clock.tick(first, episode)
        episode, step, num_envs = self.clock.episode, self.clock.step, len(first)
        if len(self.explore_steps) != num_envs:
            self.explore_steps = np.zeros(num_envs, dtype=np.int64)
        if self.acted_frames is not None:
            self.acted_frames.begin_step(first)
        remaining = np.where(first, 0, self.explore_steps)  # [N] steps of the stretch

        # outside stretches the members vote; the candidate's action is executed if the quorum agrees with it
        voting = np.flatnonzero((remaining == 0) & (episode >= 0))
        votes = np.full((len(self.ensemble.members), num_envs), -1, dtype=np.int32)  # [M, N]
        candidate = np.full(num_envs, -1)
        agreed, set_aside, hedged = np.zeros((3, num_envs), dtype=bool)
        action = np.zeros(num_envs, dtype=np.int32)
        if len(voting):
            panel = self.panels(voting)
            voting_obs = obs if len(voting) == num_envs else obs[voting]
            votes[:, voting] = self.poll(voting_obs, episode[voting], step[voting], panel)
            member, agree = self.rule.candidate(votes[:, voting], panel)
            agreed[voting] = agree >= panel.quorum
            if self.acted_frames is not None:
                consensus = np.flatnonzero(agreed)
                set_aside[consensus] = self.acted_frames.add(consensus, obs[consensus])
            if self.fallback is None:
                member = np.where((agreed & ~set_aside)[voting], member, panel.leader)
            candidate[voting], action[voting] = member, votes[member, voting]

        # otherwise the explorer acts n_{π_H} times in a row
        if self.fallback is not None:
            fallback_action = np.asarray(self.fallback.act(obs, first, episode))  # at every step, to update its memory
            if fallback_action.shape != (num_envs,):
                raise InputError(f"the explorer's actions have shape {fallback_action.shape}; accepted: ({num_envs},)")
            uniform = uniform_noise(stream_seed(self.seed, STRETCH), episode, step, 1)[:, 0]
            is_new_stretch = (remaining == 0) & (~agreed | set_aside)
            remaining = np.where(is_new_stretch, stretch_length(uniform, self.config), remaining)
            exploring = np.flatnonzero((remaining > 0) & (episode >= 0))
            if self.config.hedge and len(exploring):
                chosen = fallback_action[exploring]
                fallback_action[exploring] = self._hedged(obs[exploring], exploring)
                hedged[exploring] = fallback_action[exploring] != chosen
            action = np.where(remaining > 0, fallback_action, action)
        actor = np.where(remaining > 0, self.fallback_actor, Actor.MEMBER).astype(np.int8)
        self.explore_steps = np.maximum(remaining - 1, 0)
        self.decision = Decision(votes, candidate, agreed, set_aside, actor, self.explore_steps, hedged)
        self.tally.record(self.decision, episode)
        return action

    def _hedged(self, obs: ndarray, env: ndarray) -> ndarray:
        """Return the explorer's actions `[n]` on `obs` `[n, …]` of environments `env` `[n]`, avoiding bad actions."""
        logits = self.ensemble.logits(torch.from_numpy(obs).to(self.ensemble.device)).cpu().numpy()
        is_bad = bad_actions(logits, self.panels(env), self.agreement, self.config.hedge)
        noisy_logits: ndarray = self.fallback.noisy_logits[env]  # type: ignore[union-attr]
        return hedged_action(noisy_logits, is_bad)

    def ask_all_members(self) -> None:
        """From now on evaluate every voter, even if the vote is already decided, so that all votes can be shown."""
        self.poll.is_complete = True


def _fallback_agent(
    config: ConsensusConfig, explorer: Policy | Sequence[Policy] | Agent | None, spec: EnvSpec, seed: int
) -> Agent | None:
    """Return the agent that acts without consensus; None if the leader does."""
    if config.fallback == "none":
        return None
    if config.fallback == "random":
        return UniformAgent(spec.num_actions, seed)
    if explorer is not None and not isinstance(explorer, (nn.Module, Sequence)):
        return explorer
    explorers = explorer if isinstance(explorer, Sequence) else [explorer] if explorer else []
    if not explorers:
        raise InputError("--fallback is explorer but there is no explorer; accepted: random, none")
    return explorers_agent(explorers, config.turn, seed)
