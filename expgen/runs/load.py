"""load_agent: something that plays, from a run folder, an agent.json, or what ships with the package."""

from pathlib import Path
from typing import Any, get_args

import torch

from expgen.agents.agent import Agent
from expgen.agents.build import build_agent
from expgen.errors import check_choice
from expgen.runs.shipped import find_agent
from expgen.settings import LAST_SEED, check_location, check_type, check_whole, plain_number
from expgen.training.average import Weights
from expgen.training.resources import resolve_device


def load_agent(
    run: Path | str,
    learner: str | None = None,
    seed: int = 0,
    device: str | torch.device = "cpu",
    weights: Weights | None = None,
    **consensus: Any,
) -> Agent:
    """What plays: `run` is a run folder, an agent.json, or the name of an agent that ships, as `minimaze/expgen`.

    For members that vote it is the ExpGen agent; `consensus` changes settings of its ConsensusConfig. Else, and where
    `learner` names one (`member3`, `explorer`), it is that policy alone, by default `member0`. `seed` is that of the
    actions it samples. `weights` are the live ones or, of a run trained with `--average`, the averaged ones; by
    default what its agent.json says.
    """
    check_location("run", run, "a run folder, an agent.json, or the name of an agent that ships")
    check_type("learner", learner, (str, type(None)), "a name as member0 or explorer")
    seed = check_whole("seed", seed, 0, LAST_SEED)
    if weights is not None:
        check_choice("weights", weights, get_args(Weights))
    consensus = {name: plain_number(value) for name, value in consensus.items()}
    found = find_agent(run)
    return build_agent(
        found.agent, learner or found.learner, seed, str(resolve_device(device)), consensus, weights
    ).agent
