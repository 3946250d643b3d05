"""Why an agent did what it just did: who acted, how the members voted, what the policies thought."""

from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy import ndarray

from expgen.agents.agent import Agent, PolicyAgent, TurnsAgent, UniformAgent
from expgen.agents.consensus import ConsensusAgent
from expgen.agents.decision import Actor

Who = Literal["ensemble", "leader", "explorer", "random", "policy", "rule"]
"""`leader`: it acts without a consensus (`fallback="none"`); `rule`: an agent that does not learn."""


class Cast(NamedTuple):
    """Who takes part besides the environment; no members where one policy acts alone."""

    members: int = 0
    leader: int = 0
    quorum: int = 0
    vote: Literal["leader", "majority"] = "leader"  # whose action is voted on
    explorers: int = 0  # how many policies take turns, and nobody votes


class Reason(NamedTuple):
    """Of one step of one environment."""

    who: Who
    votes: tuple[int, ...] = ()  # the members' actions; none where nobody was asked
    member: int | None = None  # whose action was voted on, and carried out if a member acts; None: nobody was asked
    agrees: tuple[bool, ...] = ()  # which members agree with that one
    is_set_aside: bool = False  # enough agreed, but the ensemble had acted on this frame before
    is_hedged: bool = False  # the members objected to the explorer's action and it took another
    lasts: int = 0  # steps of exploration still to come after this one
    probability: tuple[float, ...] = ()  # [A] of the policy, or the mean over the members where they were asked
    explorer: tuple[float, ...] = ()  # [A] the explorer's, who sees every frame
    value: float | None = None  # what a policy that acts alone expects
    turn: int = 0  # of policies that take turns, the one that acts, from 1 on


def cast_of(agent: Agent) -> Cast:
    """Who takes part in an agent's decisions."""
    if isinstance(agent, ConsensusAgent):
        vote: Literal["leader", "majority"] = "majority" if agent.rule.is_majority else "leader"
        return Cast(len(agent.ensemble.members), agent.config.leader, agent.quorum, vote)
    return Cast(explorers=len(agent.agents)) if isinstance(agent, TurnsAgent) else Cast()


def reason_of(agent: Agent) -> Reason:
    """Of the last action `agent` chose, in its first environment; an ensemble's agent must have asked everyone."""
    if isinstance(agent, ConsensusAgent):
        return _consensus_reason(agent)
    if (acting := _acting(agent)) and acting.output is not None:
        turn = int(agent.acting[0]) + 1 if isinstance(agent, TurnsAgent) else 0
        value = float(acting.output.value[0, 0])
        who: Who = "explorer" if turn and _are_explorers(agent) else "policy"
        return Reason(who, probability=_policy(acting), value=value, turn=turn)
    return Reason("random" if isinstance(agent, UniformAgent) else "rule")


def _consensus_reason(agent: ConsensusAgent) -> Reason:
    decision = agent.decision
    assert decision is not None and agent.poll.is_complete
    votes = decision.votes[:, 0]  # [M]
    member = int(decision.candidate[0])
    was_asked = member >= 0
    return Reason(
        _who(Actor(int(decision.actor[0])), bool(decision.agreed[0] and not decision.set_aside[0])),
        votes=tuple(votes.tolist()) if was_asked else (),
        member=member if was_asked else None,
        agrees=_agrees(agent, votes, member) if was_asked else (),
        is_set_aside=bool(decision.set_aside[0]),
        is_hedged=bool(decision.hedged[0]),
        lasts=int(decision.explore_steps[0]),
        probability=tuple(_softmax(agent.poll.logits[:, 0]).mean(0).tolist()) if was_asked else (),
        explorer=_policy(acting) if (acting := _acting(agent.fallback)) else (),
    )


def _agrees(agent: ConsensusAgent, votes: ndarray, member: int) -> tuple[bool, ...]:
    """Which members `agent.agreement` counts for `member`, of the votes `[M]`."""
    agrees = agent.agreement.counts_for[votes[member], votes] & (votes >= 0)
    agrees[member] = agent.agreement.counts_itself[votes[member]]
    return tuple(agrees.tolist())


def _who(actor: Actor, is_consensus: bool) -> Who:
    if actor is Actor.MEMBER:
        return "ensemble" if is_consensus else "leader"
    return "explorer" if actor is Actor.EXPLORER else "random"


def _acting(agent: Agent | None) -> PolicyAgent | None:
    """The one policy that chose the first environment's action, if one did: of explorers the one whose turn it is."""
    if isinstance(agent, TurnsAgent):
        return agent.agents[agent.acting[0]]
    return agent if isinstance(agent, PolicyAgent) else None


def _are_explorers(agent: Agent) -> bool:
    """Whether all that take turns remember; where some do not, members and explorers alike are but policies."""
    return isinstance(agent, TurnsAgent) and all(part.policy.state_size for part in agent.agents)


def _policy(agent: PolicyAgent) -> tuple[float, ...]:
    assert agent.output is not None
    return tuple(torch.softmax(agent.output.logits[0, 0], 0).tolist())


def _softmax(logits: ndarray) -> ndarray:
    power = np.exp(logits - logits.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)
