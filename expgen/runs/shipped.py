"""find_agent, load_agent: load an agent by run folder, agent.json, or the name of a shipped agent.

Shipped agents are run folders with weights only and a card, written by `runs.bundle`; they play like any run. The wheel
leaves the weights of some out; `runs.fetch_agent` gets them.
"""

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args

import torch

from expgen.agents.agent import Agent
from expgen.agents.build import build_agent
from expgen.agents.consensus import CONSENSUS_SETTINGS
from expgen.agents.description import AGENT_FILE, AgentDescription
from expgen.agents.policies import CARD, read_card, with_weights_of
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


def fetched_agents() -> Path:
    """Return the user's folder for agents that `expgen fetch` downloads; raise InputError if there is no home."""
    try:
        data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    except RuntimeError:
        raise InputError("there is no home directory; accepted: the environment variable XDG_DATA_HOME") from None
    return Path(data) / "expgen" / "agents"


@dataclass(frozen=True)
class BundledAgent:
    """One agent of a bundle."""

    name: str  # GAME/METHOD
    folder: RunFolder
    learner: str | None  # None: all policies together
    method: str
    trained: Mapping[str, Any]  # command, commit, config digest, minutes, hardware; policies with averaged weights
    sha256: str  # of its weights, or of the digests of all its policies

    @property
    def is_installed(self) -> bool:
        """Whether its weights are here; if not, `expgen fetch` gets them."""
        return _has_weights(self.folder)

    @property
    def scores(self) -> dict[str, Score]:
        """Scores of the shipped weights, by split."""
        rows = read_scores(self.folder.scores_file)
        return {row.split: row for row in rows if row.agent == (self.learner or row.algorithm)}


class FoundAgent(NamedTuple):
    """The result of `find_agent`."""

    agent: AgentDescription
    location: Location  # of the run folder, file or bundle: an absolute path or a URL
    learner: str | None  # the policy that a bundled name selects; None: all
    is_bundled: bool  # shipped or on a hub: scores are not saved in its folder

    @property
    def folder(self) -> RunFolder:
        """Its folder, or the local copy of a URL."""
        return RunFolder(self.agent.folder)


def bundled_agents(where: Path = PRETRAINED, fetched: Path | None = None) -> dict[str, BundledAgent]:
    """Return the shipped agents by name.

    where: the folder of the package's own agents.
    fetched: the folder of the agents that were fetched, for those that the package has without weights; default:
        `fetched_agents()`.
    """
    agents = {}
    for card in sorted(where.glob(f"*/{CARD}")):
        folder = _with_weights(RunFolder(card.parent), fetched)
        data = read_card(card)
        with parsing(card, "a card that scripts/bundle wrote"):
            for name, facts in data["agents"].items():
                agents[name] = BundledAgent(name, folder, **{"trained": data["trained"], **facts})
    return agents


def _with_weights(folder: RunFolder, fetched: Path | None) -> RunFolder:
    """Return the folder of the same name in `fetched` if `folder` has no weights and the other has the same card."""
    if _has_weights(folder):
        return folder
    try:
        other = RunFolder((fetched or fetched_agents()) / folder.path.name)
        is_same = other.card_file.is_file() and read_card(other.card_file) == read_card(folder.card_file)
    except InputError:  # no home directory, or a damaged card: fetching it again replaces it
        return folder
    return other if is_same else folder


def _has_weights(folder: RunFolder) -> bool:
    return all((folder.path / file).is_file() for file in read_card(folder.card_file).get("files", {}))


def is_shipped(path: Path, where: Path = PRETRAINED) -> bool:
    """Return whether `path` is in the folder of the package's own agents."""
    return where.resolve() in path.resolve().parents


def find_agent(name: Location, where: Path = PRETRAINED) -> FoundAgent:
    """Find the agent of a run folder, a URL or an agent.json, or else the shipped agent of that name."""
    check_location("run", name, "a run folder, an agent.json, or the name of a shipped agent")
    path = local_copy(name)
    if path.is_file() or (path / AGENT_FILE).exists() or RunFolder(path).exists():
        is_bundled = is_hub(name) or is_shipped(path, where)
        return FoundAgent(read_agent(path), absolute(name), None, is_bundled)
    agents = bundled_agents(where)
    if agent := agents.get(str(name)):
        if not agent.is_installed:
            how = f"expgen fetch {name} --from SOURCE, a folder or URL of agents such as expgen/pretrained of a clone"
            raise InputError(f"the weights of {name} are not part of this installation; accepted after {how}")
        return FoundAgent(read_agent(agent.folder.path), agent.folder.path, agent.learner, is_bundled=True)
    accepted = f"a run folder, an {AGENT_FILE}, or {', '.join(agents) or 'a name from expgen agents'}"
    missing = f"{RunFolder(path).config_file.name}: No such file or directory"
    raise InputError(f"{name} is no run folder: {missing}; accepted: {accepted}")


def load_agent(
    run: Path | str,
    learner: str | None = None,
    seed: int = 0,
    device: str | torch.device = "cpu",
    weights: Weights | None = None,
    temperature: float | None = None,
    explorer_temperature: float | None = None,
    **consensus: Any,
) -> Agent:
    """Load an agent: the ExpGen agent of an ensemble, or a single policy.

    run: a run folder, an agent.json, or the name of a shipped agent such as `minimaze/expgen`.
    learner: play only this policy, such as `member3` or `explorer`; default: the ensemble, or `member0` without one.
    seed: random seed for sampling actions.
    device: cpu, cuda or cuda:N.
    weights: live, or average for a run trained with `--average`; default: those in agent.json.
    temperature: divide all policies' logits by this before sampling; 1: as trained, 0: the most likely action;
        default: the one in agent.json.
    explorer_temperature: the temperature of explorers that play beside members; default: the one in agent.json, or else
        `temperature`.
    consensus: settings of ConsensusConfig to override.
    """
    check_type("learner", learner, (str, type(None)), "a name such as member0 or explorer")
    seed = check_integer("seed", seed, 0, LAST_SEED)
    if weights is not None:
        check_choice("weights", weights, get_args(Weights))
    consensus = {name: to_python_number(value) for name, value in consensus.items()}
    if unknown := sorted(consensus.keys() - set(CONSENSUS_SETTINGS)):
        accepted = (*list(inspect.signature(load_agent).parameters)[1:-1], *CONSENSUS_SETTINGS)
        raise InputError(f"load_agent has no argument {unknown[0]!r}; accepted: {', '.join(accepted)}")
    found, where = find_agent(run), str(resolve_device(device))
    chosen = found.learner if learner is None else learner
    playing = with_weights_of(found.agent, weights, chosen)
    return build_agent(playing, chosen, seed, where, consensus, temperature, explorer_temperature).agent
