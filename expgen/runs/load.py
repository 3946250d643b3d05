"""load_agent: something that plays, from a run folder, an agent.json, or what ships with the package."""

from pathlib import Path
from typing import Any

from expgen.agents.agent import Agent
from expgen.agents.build import build_agent
from expgen.runs.shipped import find_agent
from expgen.training.average import Weights


def load_agent(
    run: Path | str,
    learner: str | None = None,
    seed: int = 0,
    device: str = "cpu",
    weights: Weights | None = None,
    **consensus: Any,
) -> Agent:
    """What plays: `run` is a run folder, an agent.json, or the name of an agent that ships, as `minimaze/expgen`.

    For members that vote it is the ExpGen agent; `consensus` changes settings of its ConsensusConfig. Else, and where
    `learner` names one (`member3`, `explorer`), it is that policy alone, by default `member0`. `seed` is that of the
    actions it samples. `weights` are the live ones or, of a run trained with `--average`, the averaged ones; by
    default what its agent.json says.
    """
    found = find_agent(run)
    return build_agent(found.agent, learner or found.learner, seed, device, consensus, weights).agent
