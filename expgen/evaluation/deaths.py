"""DeathCount: how many episodes of a consensus agent ended by death, and how many of these while it explored."""

from expgen.agents.consensus import ConsensusAgent
from expgen.agents.decision import Actor
from expgen.evaluation.evaluate import Episode, OnEpisode


class DeathCount:
    """Counts the deaths of `agent`; call it with each finished episode, before the agent acts again."""

    def __init__(self, agent: ConsensusAgent, on_episode: OnEpisode = lambda episode: None) -> None:
        """`on_episode` is called with each episode too."""
        self.agent, self.on_episode = agent, on_episode
        self.deaths = 0  # episodes that ended neither in success nor at the time limit
        self.while_exploring = 0  # of these, episodes whose last step was a step of exploration

    def __call__(self, episode: Episode) -> None:
        if episode.died:
            decision = self.agent.decision
            assert decision is not None
            self.deaths += 1
            actor = decision.actor[self.agent.clock.episode == episode.number]  # [1]
            self.while_exploring += int((actor != Actor.MEMBER).sum())
        self.on_episode(episode)
