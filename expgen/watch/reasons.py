"""Explanation of an agent's last action: who acted, the members' votes, the policies' probabilities."""

from typing import Literal, NamedTuple

import torch
from scipy.special import softmax

from expgen.agents.agent import Agent, PolicyAgent, TurnsAgent, UniformAgent
from expgen.agents.consensus import ConsensusAgent
from expgen.agents.decision import Actor
from expgen.agents.mean import MeanAgent

Who = Literal["ensemble", "leader", "explorer", "random", "policy", "rule"]
"""`leader`: the leader without a consensus (`fallback="none"`); `rule`: an agent that is not a policy."""


class EnsembleInfo(NamedTuple):
    """The policies of an agent and how they vote; 0 members if one policy acts alone."""

    members: int = 0
    leader: int = 0
    quorum: int = 0
    vote: Literal["leader", "majority"] = "leader"  # whose action is voted on
    explorers: int = 0  # number of policies that take turns without a vote
    averaged: int = 0  # number of policies whose mean is sampled


class Reason(NamedTuple):
    """Why an action was taken, in one step of one environment."""

    who: Who
    votes: tuple[int, ...] = ()  # the members' actions; empty without a vote
    member: int | None = None  # whose action was voted on, and executed if a member acts; None without a vote
    agrees: tuple[bool, ...] = ()  # which members agree with it
    is_set_aside: bool = False  # the quorum agreed, but the ensemble had acted on this frame before
    is_hedged: bool = False  # the explorer's action was replaced because the members object to it
    lasts: int = 0  # remaining steps of exploration after this one
    probability: tuple[float, ...] = ()  # [A] of the policy or mean of policies, or the mean over voting members
    explorer: tuple[float, ...] = ()  # [A] the explorer's probabilities
    value: float | None = None  # value estimate of a policy that acts alone, or the mean of several
    turn: int = 0  # number of the acting policy among those that take turns, from 1


def ensemble_info(agent: Agent) -> EnsembleInfo:
    """Return the policies of `agent` and how they vote."""
    if isinstance(agent, ConsensusAgent):
        vote: Literal["leader", "majority"] = "majority" if agent.rule.is_majority else "leader"
        return EnsembleInfo(len(agent.ensemble.members), agent.config.leader, agent.quorum, vote)
    if isinstance(agent, MeanAgent):
        return EnsembleInfo(averaged=agent.num_policies)
    return EnsembleInfo(explorers=len(agent.agents)) if isinstance(agent, TurnsAgent) else EnsembleInfo()


def reason_of(agent: Agent) -> Reason:
    """Explain the last action of `agent` in its first environment; an ensemble must have evaluated all members."""
    if isinstance(agent, ConsensusAgent):
        return _consensus_reason(agent)
    if (acting := _acting(agent)) and acting.output is not None:
        who: Who = "policy"
        turn, value = 0, float(acting.output.value[0, 0])
        if isinstance(agent, TurnsAgent):
            turn = int(agent.acting[0]) + 1
            if all(part.policy.state_size for part in agent.agents):  # explorers only, no members
                who = "explorer"
        return Reason(who, probability=_probabilities(acting), value=value, turn=turn)
    return Reason("random" if isinstance(agent, UniformAgent) else "rule")


def _consensus_reason(agent: ConsensusAgent) -> Reason:
    decision = agent.decision
    assert decision is not None and agent.poll.is_complete
    votes = decision.votes[:, 0]  # [M]
    member = int(decision.candidate[0])
    who: dict[int, Who] = {Actor.MEMBER: "leader", Actor.EXPLORER: "explorer", Actor.RANDOM: "random"}
    if decision.agreed[0] and not decision.set_aside[0]:
        who[Actor.MEMBER] = "ensemble"
    reason = Reason(
        who[int(decision.actor[0])],
        is_set_aside=bool(decision.set_aside[0]),
        is_hedged=bool(decision.hedged[0]),
        lasts=int(decision.explore_steps[0]),
        explorer=_probabilities(acting) if (acting := _acting(agent.fallback)) else (),
    )
    if member < 0:
        return reason  # there was no vote
    agrees = agent.agreement.counts_for[votes[member], votes] & (votes >= 0)  # [M]
    agrees[member] = agent.agreement.counts_itself[votes[member]]
    mean = softmax(agent.poll.logits[:, 0], axis=-1).mean(0)  # [A]
    return reason._replace(
        votes=tuple(votes.tolist()), member=member, agrees=tuple(agrees.tolist()), probability=tuple(mean.tolist())
    )


def _acting(agent: Agent | None) -> PolicyAgent | None:
    """Return the agent of the one policy that chose the first environment's action, if there is one."""
    if isinstance(agent, TurnsAgent):
        return agent.agents[agent.acting[0]]
    return agent if isinstance(agent, PolicyAgent) else None


def _probabilities(agent: PolicyAgent) -> tuple[float, ...]:
    assert agent.output is not None
    return tuple(torch.softmax(agent.output.logits[0, 0], 0).tolist())
