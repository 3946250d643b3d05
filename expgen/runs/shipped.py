"""Agents that ship with the package: run folders with weights alone, each with a card that says what they are.

A bundle is a run folder like any other, so whatever plays a run plays it; `runs.bundle` makes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from expgen.errors import InputError
from expgen.evaluation.scores import Score, read_scores
from expgen.runs.folder import CARD, RunFolder
from expgen.storage.location import Location, absolute
from expgen.storage.view import local_copy

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
        return {row.split: row for row in rows if row.agent.split()[0] == (self.learner or row.algorithm)}


class FoundRun(NamedTuple):
    """What the name of a run or an agent means."""

    place: Location
    folder: RunFolder  # there, or what was fetched from there
    learner: str | None
    is_bundled: bool


def bundled_agents(where: Path = PRETRAINED) -> dict[str, BundledAgent]:
    """Every agent that ships, by name."""
    agents = {}
    for card in sorted(where.glob(f"*/{CARD}")):
        folder = RunFolder(card.parent)
        data = folder.read_card()
        try:
            for name, facts in data["agents"].items():
                agents[name] = BundledAgent(name, folder, trained=data["trained"], **facts)
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{card} lacks {error}; accepted: a card that scripts/bundle wrote") from None
    return agents


def find_run(name: Location, where: Path = PRETRAINED) -> FoundRun:
    """A run folder, a run at a URL, or else the bundled agent of that name."""
    folder = RunFolder(local_copy(name))
    if folder.exists():
        return FoundRun(absolute(name), folder, None, is_bundled=False)
    agents = bundled_agents(where)
    if agent := agents.get(str(name)):
        return FoundRun(agent.folder.path, agent.folder, agent.learner, is_bundled=True)
    missing = f"{name} is no run folder: {folder.config_file.name}: No such file or directory"
    raise InputError(f"{missing}; accepted: a run folder, or {', '.join(agents) or 'an agent of expgen agents'}")
