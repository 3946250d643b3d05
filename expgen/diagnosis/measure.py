"""What diagnose measures: a run's policies side by side, and what ExpGen lives on.

A member alone, the whole agent, the explorer and random actions play the same levels, trained on and unseen. Three
things must hold for ExpGen to help: members do worse on unseen levels, they agree where they are right rather than
where they are wrong, and the explorer finds more than chance does. `diagnosis.advice` says which of them hold.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy import ndarray

from expgen.agents.agent import Agent, UniformAgent
from expgen.agents.build import build_agent, load_policies
from expgen.agents.consensus import ConsensusAgent, ConsensusConfig
from expgen.agents.decision import Counts
from expgen.agents.description import EXPLORER, AgentDescription
from expgen.evaluation.evaluate import Episode, Evaluation
from expgen.evaluation.scores import Split
from expgen.exploration.explore import Exploration
from expgen.reward.knn import KnnConfig

Player = Literal["member", "agent", "explorer", "random"]
NEAR = 10  # steps before success that count as near it
SHOWN = 30  # steps before success that agreement is told for, one by one


class Play(NamedTuple):
    """What one player did on one split; `exploration` where it was measured."""

    player: Player
    split: Split
    evaluation: Evaluation
    exploration: Exploration | None


class Votes(NamedTuple):
    """How the members agreed on unseen levels (on training levels where there are no others)."""

    members: int
    quorum: int
    counts: Counts
    near: float  # mean share of members that agree in the last NEAR steps before success; nan where there was none
    far: float  # the same of all other steps
    before_success: ndarray  # the same by steps before success, from 1 on; nan where nobody was asked


@dataclass(frozen=True)
class Measurements:
    """All that was played."""

    name: str
    env: str
    episodes: int
    plays: tuple[Play, ...]
    votes: Votes | None  # None where fewer than two members are there to agree

    def of(self, player: Player, split: Split) -> Play | None:
        """What `player` did on `split`; None where it did not play."""
        return next((play for play in self.plays if (play.player, play.split) == (player, split)), None)

    @property
    def judged(self) -> Split:
        """The split that agents are judged by: unseen levels, where there are any."""
        return "test" if any(play.split == "test" for play in self.plays) else "train"


def players_of(agent: AgentDescription, seed: int, device: str) -> dict[Player, Callable[[], Agent]]:
    """How to make each player of a run or agent afresh."""
    trained = agent.trained()
    learns_reward = bool(agent.members) and not isinstance(agent.members[0].reward, KnnConfig)
    leader = f"member{agent.consensus.leader if agent.consensus else 0}"
    players: dict[Player, Callable[[], Agent]] = {}
    members = [name for name in trained if not name.startswith(EXPLORER)]
    if learns_reward and (agent.consensus or len(members) == 1):
        players["member"] = lambda: build_agent(agent, leader, seed, device).agent
    elif learns_reward:
        players["member"] = lambda: _counting_votes(agent, members, seed, device)
    if agent.consensus:
        players["agent"] = lambda: build_agent(agent, None, seed, device).agent
    explorer = EXPLORER if EXPLORER in trained else None if learns_reward else "member0"
    if explorer:
        players["explorer"] = lambda: build_agent(agent, explorer, seed, device).agent
    players["random"] = lambda: UniformAgent(agent.spec.num_actions, seed)
    return players


def _counting_votes(agent: AgentDescription, members: list[str], seed: int, device: str) -> ConsensusAgent:
    """The first of members that do not vote, with the others' votes counted."""
    policies, _ = load_policies(agent, members, device, agent.weights)
    return ConsensusAgent(policies, None, agent.spec, ConsensusConfig(fallback="none"), seed)


def explorer_reward(agent: AgentDescription) -> KnnConfig:
    """The intrinsic reward that the explorer learns from, or would."""
    policies = (policy.reward for policy in agent.policies.values())
    return next((reward for reward in policies if isinstance(reward, KnnConfig)), KnnConfig())


class VoteRecorder:
    """Plays as `agent` does, asks every member, and keeps which share of them agreed at each step."""

    def __init__(self, agent: ConsensusAgent) -> None:
        agent.ask_everyone()
        self.agent, self.spec = agent, agent.spec
        self.asked: list[tuple[ndarray, ...]] = []  # [n]: episodes, step within each, share of members that agree

    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        action = self.agent.act(obs, first, episode)
        decision, clock = self.agent.decision, self.agent.clock
        assert decision is not None
        asked = np.flatnonzero(decision.candidate >= 0)
        if len(asked):
            agree = self.agent.agreement.count(decision.votes[:, asked], decision.candidate[asked])
            share = agree / len(self.agent.ensemble.members)
            self.asked.append((clock.episode[asked], clock.step[asked], share))
        return action

    def votes(self, played: list[Episode]) -> Votes:
        """Of the episodes `played`, which are over."""
        number, step, share = map(np.concatenate, zip(*self.asked))
        solved = np.array([episode.solved for episode in played])[number]
        left = np.array([episode.length for episode in played])[number] - step  # 1 at the last step
        is_near = solved & (left <= NEAR)
        by_distance = np.array([_mean(share[solved & (left == at)]) for at in range(1, SHOWN + 1)])
        agent = self.agent
        about = len(agent.ensemble.members), agent.quorum, agent.tally
        return Votes(*about, _mean(share[is_near]), _mean(share[~is_near]), by_distance)


def _mean(values: ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")
