"""Measurements behind `diagnose`: a member, the agent, the explorer and random actions on the same levels.

ExpGen helps if three conditions hold: members do worse on unseen levels, they agree more on correct actions than on
wrong ones, and the explorer finds more than random actions do. `diagnosis.advice` checks these conditions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy import ndarray

from expgen.agents.agent import Agent, UniformAgent
from expgen.agents.build import build_agent
from expgen.agents.consensus import ConsensusAgent, ConsensusConfig
from expgen.agents.decision import Counts
from expgen.agents.description import EXPLORER, AgentDescription
from expgen.agents.policies import load_policies
from expgen.evaluation.evaluate import Episode, Evaluation
from expgen.evaluation.scores import Split
from expgen.exploration.explore import Exploration
from expgen.reward.knn import KnnConfig

Player = Literal["member", "agent", "explorer", "random"]
NEAR = 10  # steps before success that count as near it
SHOWN = 30  # steps before success for which agreement is recorded separately


class Play(NamedTuple):
    """The result of one player on one split; `exploration` is None if it was not measured."""

    player: Player
    split: Split
    evaluation: Evaluation
    exploration: Exploration | None


class Votes(NamedTuple):
    """Agreement of the members on unseen levels, or on training levels if there are no others."""

    members: int
    quorum: int
    counts: Counts
    near: float  # mean share of members that agree in the last NEAR steps before success; nan without such steps
    far: float  # mean share in all other steps
    before_success: ndarray  # [SHOWN]: mean share by steps before success, from 1; nan without votes


@dataclass(frozen=True)
class Measurements:
    """The results of all players on all splits."""

    name: str
    env: str
    episodes: int
    plays: tuple[Play, ...]
    votes: Votes | None  # None with fewer than two members
    end_value: float = 0.0  # that the explorer was trained with

    def play(self, player: Player, split: Split) -> Play | None:
        """Return the result of `player` on `split`; None if it did not play."""
        return next((play for play in self.plays if (play.player, play.split) == (player, split)), None)

    @property
    def main_split(self) -> Split:
        """The split that the verdict is based on: `test` if there are unseen levels, else `train`."""
        return "test" if any(play.split == "test" for play in self.plays) else "train"


def player_factories(agent: AgentDescription, seed: int, device: str) -> dict[Player, Callable[[], Agent]]:
    """Return a function for each player of a run or agent that makes it in its initial state."""
    trained = agent.trained()
    learns_reward = bool(agent.members) and not isinstance(agent.members[0].reward, KnnConfig)
    players: dict[Player, Callable[[], Agent]] = {}
    members = [name for name in trained if not name.startswith(EXPLORER)]
    if learns_reward and (agent.consensus or len(members) == 1):
        players["member"] = lambda: build_agent(agent, agent.leader, seed, device).agent
    elif learns_reward:
        players["member"] = lambda: _leader_with_votes(agent, members, seed, device)
    if agent.consensus:
        players["agent"] = lambda: build_agent(agent, None, seed, device).agent
    explorer = EXPLORER if EXPLORER in trained else None if learns_reward else "member0"
    if explorer:
        players["explorer"] = lambda: build_agent(agent, explorer, seed, device).agent
    players["random"] = lambda: UniformAgent(agent.spec.num_actions, seed)
    return players


def _leader_with_votes(agent: AgentDescription, members: list[str], seed: int, device: str) -> ConsensusAgent:
    """Return an agent that plays the first member and records the votes of all, for members that do not vote."""
    policies, _ = load_policies(agent, members, device)
    return ConsensusAgent(policies, None, agent.spec, ConsensusConfig(fallback="none"), seed)


def explorer_reward(agent: AgentDescription) -> KnnConfig:
    """Return the intrinsic reward of the explorer, or its default if there is no explorer."""
    policies = (policy.reward for policy in agent.policies.values())
    return next((reward for reward in policies if isinstance(reward, KnnConfig)), KnnConfig())


class VoteRecorder:
    """Plays like `agent`, but asks every member, and records the share of members that agree at each step."""

    def __init__(self, agent: ConsensusAgent) -> None:
        agent.ask_all_members()
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
        """Return the votes in the finished episodes `played`, in the order of their numbers."""
        number, step, share = map(np.concatenate, zip(*self.asked))
        solved = np.array([episode.solved for episode in played])[number]
        left = np.array([episode.length for episode in played])[number] - step  # 1 at the last step
        is_near = solved & (left <= NEAR)
        by_distance = np.array([_mean(share[solved & (left == at)]) for at in range(1, SHOWN + 1)])
        members, quorum, counts = len(self.agent.ensemble.members), self.agent.quorum, self.agent.tally
        return Votes(members, quorum, counts, _mean(share[is_near]), _mean(share[~is_near]), by_distance)


def _mean(values: ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")
