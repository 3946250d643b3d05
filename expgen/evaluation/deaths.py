"""DeathCount: how many episodes of a consensus agent ended by death, and how many of these while it explored."""

from typing import NamedTuple

from expgen.agents.consensus import ConsensusAgent
from expgen.agents.decision import Actor
from expgen.evaluation.evaluate import Episode, OnEpisode


class Deaths(NamedTuple):
    """Numbers of episodes."""

    all: int  # ended neither in success nor at the time limit
    while_exploring: int  # of these, the last step was a step of exploration


class DeathCount:
    """Counts the deaths of `agent`; call it with each finished episode, before the agent acts again."""

    def __init__(self, agent: ConsensusAgent, on_episode: OnEpisode = lambda episode: None) -> None:
        """`on_episode` is called with each episode too."""
        self.agent, self.on_episode = agent, on_episode
        self.deaths = Deaths(0, 0)

    def __call__(self, episode: Episode) -> None:
        if episode.died:
            decision = self.agent.decision
            assert decision is not None
            actor = decision.actor[self.agent.clock.episode == episode.number]  # [1]
            is_exploring = int((actor != Actor.MEMBER).sum())
            self.deaths = Deaths(self.deaths.all + 1, self.deaths.while_exploring + is_exploring)
        self.on_episode(episode)
