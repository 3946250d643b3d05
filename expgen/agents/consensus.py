"""The ExpGen agent (Algorithm 1): act as the leader does where the ensemble agrees, else explore for a while.

Each step, in every environment by itself:

1. The explorer π_H sees the frame, whoever acts, so its memory is h_t. Every member samples a_j ~ π_r^j(·|o_t), unless
   a stretch of exploration lasts: then no vote could change anything and nobody is asked. Nor are members that could
   no longer change it, where that saves time (agents.ensemble).
2. The leader's a_i is in consensus if at least `min_agree` members, itself included, agree with it (agents.vote).
3. In consensus a_i is carried out. Otherwise n_{π_H} is drawn and the explorer acts exactly n_{π_H} times in a row.

Where the paper leaves a choice or its code differs, we do as the code that made the scores did:
- One draw of n_{π_H} per stretch; the pseudo-code redraws it at every exploring step.
- n_{π_H} ∈ {1, 2, …}, by the code's table, which approximates Geom(½) with a longer tail; see `ConsensusConfig`.
- n_{π_H} = 0 at the start of an episode (as in the pseudo-code; the code carries it over).
- The leader is one fixed member, and its *own sampled* action is carried out.

Three settings go beyond Algorithm 1; by default all are off (a fourth, `vote="turns"`, leaves the vote out: members and
explorers take turns, with `patience` members alone at first, `agents.agent.TurnsAgent`):
- `vote="majority"`: the action that most members agree with is voted on, not the leader's (agents.vote).
- `once`: a frame is the ensemble's once. A consensus on a frame on which the ensemble has acted in this episode did not
  lead out, so it is set aside and counts as disagreement. Frames on which the explorer acted do not count.
- `hedge`: the explorer's action is not taken where as many members as the quorum object to it (agents.hedge). So every
  member is asked at exploring steps too.

With all off a quorum of 1 plays exactly like `PolicyAgent(members[leader], seed)`; one beyond the ensemble's size
always plays exactly like `PolicyAgent(explorer, seed)` for an explorer with memory: each draws from a stream of its own
(expgen.random).
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy import ndarray
from torch import nn

from expgen.agents.acted_frames import EpisodeFrames
from expgen.agents.agent import Agent, UniformAgent, explorers_agent
from expgen.agents.decision import Actor, Counts, Decision
from expgen.agents.ensemble import Ensemble, Poll
from expgen.agents.hedge import bad_actions, hedged_action
from expgen.agents.predict import Predicts
from expgen.agents.quorum import majority
from expgen.agents.vote import Agreement, Panel, Vote, classes_of, everyone
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import Policy
from expgen.random import MEMBERS, MEMORYLESS, STRETCH, EpisodeClock, stream_seed, uniform_noise
from expgen.settings import check_config, flag_of, later_setting, setting

STRETCH_TABLE = (0.55, 0.25, *(0.025,) * 8)  # P(n = 1), P(n = 2), … of the paper's code; mean 2.35
TABLE_ALPHA = 0.5  # the α that the table stands for
READ_BY_TURNS = ("vote", "turn", "patience", "ensemble_size")  # settings that mean something where nobody votes


@dataclass(frozen=True)
class ConsensusConfig:
    """How members and explorer take turns."""

    ensemble_size: int = setting(0, "members that vote, the first so many; 0: all of them", low=0)
    leader: int = setting(
        0, "the member whose action is carried out when the ensemble agrees; with --vote majority it breaks ties", low=0
    )
    min_agree: int = setting(
        0, "members that must agree, the one whose action it is included; 0: more than half of them", low=0
    )
    agreement: Literal["direction", "action"] = setting(
        "direction", "what must be equal: the class of the action (direction of movement) or the action itself"
    )
    alpha: float = setting(
        TABLE_ALPHA, "α of the stretch of exploration; any other than 0.5 implies --stretch geometric", low=1e-3, high=1
    )
    stretch: Literal["table", "geometric"] = setting(
        "table", "length of a stretch: the paper's code's table for α = 0.5, or Geom(α) on 1, 2, …"
    )
    fallback: Literal["explorer", "random", "none"] = setting(
        "explorer", "who acts without agreement: the explorer, a uniformly random action, or the leader all the same"
    )
    no_op_is_up: bool = setting(False, "as the paper's code has it, take a leader's standing still for going up")
    vote: Literal["leader", "majority", "turns"] = later_setting(
        "leader",
        "whose action is carried out if enough agree with it: the leader's, or the one with most votes; turns: nobody "
        "votes, members and explorers act --turn steps each",
    )
    once: bool = later_setting(
        False, "explore instead where the ensemble agrees on a frame on which it has acted before in this episode"
    )
    turn: int = later_setting(
        50,
        "steps that one of several policies acts before another has its turn; 1: one is drawn at each step",
        low=1,
        high=10**9,
    )
    patience: int = later_setting(
        0,
        "with --vote turns: steps of an episode in which members alone take turns, before the explorers join in; 0: "
        "all take turns from the start",
        low=0,
    )
    hedge: float = later_setting(
        0.0,
        "the explorer takes another action where the members that must agree each find its own less than so many times "
        "as likely as their likeliest (0.05, say); 0: never. Members are then asked at every step",
        low=0,
        high=1,
    )

    @property
    def is_geometric(self) -> bool:
        """Whether stretches are Geom(α): asked for, or the table knows no such α."""
        return self.stretch == "geometric" or self.alpha != TABLE_ALPHA

    def quorum(self, num_members: int) -> int:
        """How many must agree; more than `num_members` can never be met."""
        return self.min_agree or majority(num_members)


CONSENSUS_SETTINGS = tuple(field.name for field in dataclasses.fields(ConsensusConfig))


def changed_consensus(config: ConsensusConfig, values: Mapping[str, Any], num_members: int) -> ConsensusConfig:
    """`config` with the settings `values`, for an ensemble of `num_members`; an InputError names what does not fit."""
    for name in values:
        if name not in CONSENSUS_SETTINGS:
            raise InputError(f"setting {name!r} is unknown to ensembles; accepted: {', '.join(CONSENSUS_SETTINGS)}")
    changed = dataclasses.replace(config, **values)
    check_config(changed)
    is_vote = num_members > 0 and changed.vote != "turns"
    if not is_vote and (unread := [name for name in values if name not in READ_BY_TURNS]):
        why = "--vote is turns, by which nobody votes" if num_members else "there are no members to vote"
        accepted = f"accepted: {', '.join(map(flag_of, READ_BY_TURNS))}"
        raise InputError(f"{flag_of(unread[0])} is given but {why}; {accepted}")
    if changed.leader >= max(num_members, 1):
        raise InputError(f"--leader is {changed.leader}; accepted: 0 to {max(num_members, 1) - 1}")
    if changed.ensemble_size > num_members:
        raise InputError(f"--ensemble-size is {changed.ensemble_size}; accepted: 0 to {num_members}")
    if values.get("stretch") == "table" and changed.is_geometric:
        raise InputError(f"--stretch is table, for α = {TABLE_ALPHA}, but α is {changed.alpha}; accepted: geometric")
    if values.get("patience") and changed.vote != "turns":
        raise InputError(f"--patience is {changed.patience} but --vote is {changed.vote}; accepted: 0, or --vote turns")
    return changed


def stretch_length(uniform: ndarray, config: ConsensusConfig) -> ndarray:
    """n_{π_H} ∈ {1, 2, …} by inverting its distribution at numbers in (0, 1), `[N]` → `[N]`."""
    if not config.is_geometric:
        return 1 + np.searchsorted(np.cumsum(STRETCH_TABLE[:-1]), uniform, side="right")
    if config.alpha == 1:
        return np.ones(len(uniform), dtype=np.int64)
    return 1 + (np.log(uniform) / math.log1p(-config.alpha)).astype(np.int64)  # P(n > j) = (1 − α)^j


class ConsensusAgent(Predicts):
    """Members, an explorer, and who is to act; `decision` is the last one, `tally` counts them.

    `fallback="none"` is the leader alone, with the votes still counted; with the majority's vote it is the leader where
    there is no consensus. The explorer may be None where it is not asked; several take turns. `panels` names the voters
    of environments `[n]`, if not every member everywhere.
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
        if config.vote == "turns":
            raise InputError("--vote is turns, by which nobody votes; accepted here: leader, majority")
        self.ensemble, self.config, self.seed, self.spec = Ensemble(members), config, seed, spec
        if config.leader >= len(members):
            raise InputError(f"--leader is {config.leader}; accepted: 0 to {len(members) - 1}")
        self.quorum = config.quorum(len(members))
        self.panels = panels or partial(everyone, len(members), config.leader, self.quorum)
        classes = classes_of(spec) if config.agreement == "direction" else None
        self.agreement = Agreement(spec.num_actions, classes, config.no_op_is_up)
        self.rule = Vote(self.agreement, config.vote)
        self.acted_frames = EpisodeFrames() if config.once else None
        self.fallback = _fallback_agent(config, explorer, spec, seed)
        if config.hedge and not hasattr(self.fallback, "noisy_logits"):
            who = "an explorer that tells no probabilities" if config.fallback == "explorer" else config.fallback
            raise InputError(f"--hedge is {config.hedge} but --fallback is {who}; accepted: 0, or a policy to explore")
        self.fallback_actor = Actor.RANDOM if config.fallback == "random" else Actor.EXPLORER
        streams = [MEMORYLESS if j == config.leader else MEMBERS + j for j in range(len(members))]
        seeds = [stream_seed(seed, stream) for stream in streams]
        self.poll = Poll(self.ensemble, self.rule, seeds, spec.num_actions)
        self.clock = EpisodeClock()
        self.explore_steps = np.zeros(0, dtype=np.int64)  # [N] n_{π_H}: steps of the stretch still to come
        self.decision: Decision | None = None
        self.tally = Counts()

    def __repr__(self) -> str:
        who = f"{len(self.ensemble.members)} members, {self.quorum} must agree, else {self.config.fallback}"
        return f"ConsensusAgent({self.spec.name}, {who})"

    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        self.clock.tick(first, episode)
        episode, step, num_envs = self.clock.episode, self.clock.step, len(first)
        if len(self.explore_steps) != num_envs:
            self.explore_steps = np.zeros(num_envs, dtype=np.int64)
        if self.acted_frames is not None:
            self.acted_frames.begin_step(first)
        left = np.where(first, 0, self.explore_steps)  # [N]

        # members vote where no stretch lasts, and the candidate's action counts if the quorum agrees with it
        asked = np.flatnonzero((left == 0) & (episode >= 0))
        votes = np.full((len(self.ensemble.members), num_envs), -1, dtype=np.int32)  # [M, N]
        candidate = np.full(num_envs, -1)
        agreed, set_aside, hedged = np.zeros((3, num_envs), dtype=bool)
        action = np.zeros(num_envs, dtype=np.int32)
        if len(asked):
            panel = self.panels(asked)
            seen = obs if len(asked) == num_envs else obs[asked]
            votes[:, asked] = self.poll(seen, episode[asked], step[asked], panel)
            member, agree = self.rule.candidate(votes[:, asked], panel)
            agreed[asked] = agree >= panel.quorum
            if self.acted_frames is not None:
                consensus = np.flatnonzero(agreed)
                set_aside[consensus] = self.acted_frames.add(consensus, obs[consensus])
            if self.fallback is None:
                member = np.where((agreed & ~set_aside)[asked], member, panel.leader)
            candidate[asked], action[asked] = member, votes[member, asked]

        # else the explorer acts n_{π_H} times in a row
        if self.fallback is not None:
            other = np.asarray(self.fallback.act(obs, first, episode))  # asked every step: this feeds the memory
            if other.shape != (num_envs,):
                raise InputError(f"the explorer's actions have shape {other.shape}; accepted: ({num_envs},)")
            uniform = uniform_noise(stream_seed(self.seed, STRETCH), episode, step, 1)[:, 0]
            left = np.where((left == 0) & (~agreed | set_aside), stretch_length(uniform, self.config), left)
            exploring = np.flatnonzero((left > 0) & (episode >= 0))
            if self.config.hedge and len(exploring):
                chosen = other[exploring]
                other[exploring] = self._hedged(obs[exploring], exploring)
                hedged[exploring] = other[exploring] != chosen
            action = np.where(left > 0, other, action)
        actor = np.where(left > 0, self.fallback_actor, Actor.MEMBER).astype(np.int8)
        self.explore_steps = np.maximum(left - 1, 0)
        self.decision = Decision(votes, candidate, agreed, set_aside, actor, self.explore_steps, hedged)
        self.tally.record(self.decision, episode)
        return action

    def _hedged(self, obs: ndarray, env: ndarray) -> ndarray:
        """The explorer's action on `obs` `[n, …]` in the environments `env` `[n]`, none that the members find bad."""
        logits = self.ensemble.logits(torch.from_numpy(obs).to(self.ensemble.device)).cpu().numpy()
        is_bad = bad_actions(logits, self.panels(env), self.agreement, self.config.hedge)
        noisy_logits: ndarray = self.fallback.noisy_logits[env]  # type: ignore[union-attr]
        return hedged_action(noisy_logits, is_bad)

    def ask_everyone(self) -> None:
        """From now on ask every member of a panel, for whoever shows the votes."""
        self.poll.is_complete = True


def _fallback_agent(
    config: ConsensusConfig, explorer: Policy | Sequence[Policy] | Agent | None, spec: EnvSpec, seed: int
) -> Agent | None:
    """Who acts where the ensemble does not agree; None for the leader himself."""
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
