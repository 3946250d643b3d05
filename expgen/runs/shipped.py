"""find_agent, load_agent: an agent by its run folder, its agent.json, or its name among those that ship.

What ships are run folders with weights alone, each with a card that says what they are; `runs.bundle` makes them. So
whatever plays a run plays them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args

import torch

from expgen.agents.agent import Agent
from expgen.agents.build import CARD, build_agent, read_card
from expgen.agents.description import AGENT_FILE, AgentDescription
from expgen.errors import InputError, check_choice
from expgen.evaluation.scores import Score, read_scores
from expgen.runs.agent_files import read_agent
from expgen.runs.folder import RunFolder, parsing
from expgen.settings import LAST_SEED, check_integer, check_location, check_type, to_python_number
from expgen.storage.hub import is_hub
from expgen.storage.location import Location, absolute
from expgen.storage.view import local_copy
from expgen.training.average import Weights
from expgen.training.resources import resolve_device

PRETRAINED = Path(__file__).parents[1] / "pretrained"


@dataclass(frozen=True)
class BundledAgent:
    """One agent of a bundle."""

    name: str  # GAME/METHOD
    folder: RunFolder
    learner: str | None  # None: all of them together
    method: str
    trained: Mapping[str, Any]  # command, commit, config digest, minutes, hardware; whose weights are averaged
    sha256: str  # of its weights' contents, or of the digests of several policies

    @property
    def scores(self) -> dict[str, Score]:
        """By split, played with the weights as they ship."""
        rows = read_scores(self.folder.scores_file)
        return {row.split: row for row in rows if row.agent == (self.learner or row.algorithm)}


class FoundAgent(NamedTuple):
    """What the name of a run or an agent means."""

    agent: AgentDescription
    location: Location  # of the run folder, the file or the bundle, as others can find it
    learner: str | None  # one policy that is meant of it
    is_bundled: bool  # it ships, or lies on a hub: scores are not kept beside it

    @property
    def folder(self) -> RunFolder:
        """Where it lies, or what was fetched from there."""
        return RunFolder(self.agent.folder)


def bundled_agents(where: Path = PRETRAINED) -> dict[str, BundledAgent]:
    """Every agent that ships, by name."""
    agents = {}
    for card in sorted(where.glob(f"*/{CARD}")):
        folder, data = RunFolder(card.parent), read_card(card)
        with parsing(card, "a card that scripts/bundle wrote"):
            for name, facts in data["agents"].items():
                agents[name] = BundledAgent(name, folder, **{"trained": data["trained"], **facts})
    return agents


def find_agent(name: Location, where: Path = PRETRAINED) -> FoundAgent:
    """The agent of a run folder, of a run at a URL or in an agent.json, or else the bundled agent of that name."""
    path = local_copy(name)
    if path.is_file() or (path / AGENT_FILE).exists() or RunFolder(path).exists():
        return FoundAgent(read_agent(path), absolute(name), None, is_bundled=is_hub(name))
    agents = bundled_agents(where)
    if agent := agents.get(str(name)):
        return FoundAgent(read_agent(agent.folder.path), agent.folder.path, agent.learner, is_bundled=True)
    missing = f"{name} is no run folder: {RunFolder(path).config_file.name}: No such file or directory"
    accepted = f"a run folder, an {AGENT_FILE}, or {', '.join(agents) or 'an agent of expgen agents'}"
    raise InputError(f"{missing}; accepted: {accepted}")


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
    seed = check_integer("seed", seed, 0, LAST_SEED)
    if weights is not None:
        check_choice("weights", weights, get_args(Weights))
    consensus = {name: to_python_number(value) for name, value in consensus.items()}
    found, where = find_agent(run), str(resolve_device(device))
    return build_agent(found.agent, learner or found.learner, seed, where, consensus, weights).agent
