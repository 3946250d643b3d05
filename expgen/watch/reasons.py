"""Why an agent did what it just did: who acted, how the members voted, what the policies thought."""

from typing import Literal, NamedTuple

import torch
from scipy.special import softmax

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
        who: Who = "policy"
        turn, value = 0, float(acting.output.value[0, 0])
        if isinstance(agent, TurnsAgent):
            turn = int(agent.acting[0]) + 1
            if all(part.policy.state_size for part in agent.agents):  # else members and explorers alike are policies
                who = "explorer"
        return Reason(who, probability=_policy(acting), value=value, turn=turn)
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
        explorer=_policy(acting) if (acting := _acting(agent.fallback)) else (),
    )
    if member < 0:
        return reason  # nobody was asked
    agrees = agent.agreement.counts_for[votes[member], votes] & (votes >= 0)  # [M]
    agrees[member] = agent.agreement.counts_itself[votes[member]]
    mean = softmax(agent.poll.logits[:, 0], axis=-1).mean(0)  # [A]
    return reason._replace(
        votes=tuple(votes.tolist()), member=member, agrees=tuple(agrees.tolist()), probability=tuple(mean.tolist())
    )


def _acting(agent: Agent | None) -> PolicyAgent | None:
    """The one policy that chose the first environment's action, if one did: of explorers the one whose turn it is."""
    if isinstance(agent, TurnsAgent):
        return agent.agents[agent.acting[0]]
    return agent if isinstance(agent, PolicyAgent) else None


def _policy(agent: PolicyAgent) -> tuple[float, ...]:
    assert agent.output is not None
    return tuple(torch.softmax(agent.output.logits[0, 0], 0).tolist())
