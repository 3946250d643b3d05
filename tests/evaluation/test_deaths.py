"""Deaths of a consensus agent, and which of them were steps of exploration."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from expgen.agents.decision import Actor
from expgen.evaluation.deaths import DeathCount
from expgen.evaluation.evaluate import Episode


def test_deaths_are_attributed_to_who_acted_last() -> None:
    """Episode 4 ends by a member, 7 by the explorer, 9 by a random action; 5 is solved while the explorer acts."""
    decision = SimpleNamespace(actor=np.array([Actor.MEMBER, Actor.EXPLORER, Actor.RANDOM, Actor.EXPLORER]))
    agent: Any = SimpleNamespace(decision=decision, clock=SimpleNamespace(episode=np.array([4, 7, 9, 5])))
    told: list[Episode] = []
    count = DeathCount(agent, told.append)
    finished = [Episode(0, 0.0, 3, number == 5, number != 5, number) for number in (4, 7, 9, 5)]
    for episode in finished:
        count(episode)
    assert count.deaths == (3, 2) and told == finished
