"""The rows of a run's current checkpoints, of all those that its scores.csv and exploration.csv have gathered."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from expgen.agents.build import ALGORITHM_1, policy_names
from expgen.agents.description import AgentDescription
from expgen.agents.temperature import AS_TRAINED, temperature_text
from expgen.agents.vote_kinds import KINDS
from expgen.evaluation.scores import Score, Split, count_of, read_settings, rows_so_far, variant_settings
from expgen.exploration.rows import EXPLORATION_FILE, ExplorationRow, exploration_so_far
from expgen.runs.agent_files import read_agent
from expgen.runs.folder import RunFolder
from expgen.runs.status import newest_checkpoint_steps

Row = TypeVar("Row", Score, ExplorationRow)
BySplit = dict[Split, Row]


@dataclass(frozen=True)
class CurrentScores:
    """The score rows of a run's newest checkpoints: one of each variant and split, by the variant's name.

    Of the rows with the newest settings of a variant it is the one with the most episodes, on a tie the last one. Rows
    on all levels of a split have priority over rows on some of them.
    """

    agent: AgentDescription
    scores: dict[str, BySplit[Score]]
    exploration: dict[str, BySplit[ExplorationRow]]

    @property
    def unscored(self) -> list[str]:
        """The trained policies without a row at their temperature in agent.json."""
        scored = {
            (name, read_settings(settings).get("temperature", temperature_text(AS_TRAINED)))
            for by_split in self.scores.values()
            for name, settings in map(_words, by_split.values())
        }
        temperature_of = self.agent.temperature_of
        return [name for name in self.agent.trained() if (name, temperature_text(temperature_of(name))) not in scored]


def current_scores(folder: RunFolder) -> CurrentScores:
    """Return the scores of a run's newest checkpoints."""
    agent = read_agent(folder.path)
    steps = {name: newest_checkpoint_steps(folder, name) for name in agent.policies}

    def is_current(row: Score | ExplorationRow) -> bool:
        return row.env_steps == sum(steps.get(name, 0) for name in _players(row, agent))

    scores = filter(is_current, rows_so_far(folder.scores_file))
    exploration = filter(is_current, exploration_so_far(folder.path / EXPLORATION_FILE))
    return CurrentScores(agent, _by_variant(scores, agent), _by_variant(exploration, agent))


def _by_variant(rows: Iterable[Row], agent: AgentDescription) -> dict[str, BySplit[Row]]:
    variants: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        name, settings = _words(row)
        variants[name, variant_settings(settings)].append(row)
    table = {}
    for found in variants.values():
        newest = _words(found[-1])
        ranked = sorted((row for row in found if _words(row) == newest), key=lambda row: _rank(row, agent))
        table[" ".join(newest).strip()] = {row.split: row for row in ranked}
    return table


def _rank(row: Score | ExplorationRow, agent: AgentDescription) -> tuple[bool, int]:
    return row.levels == str(agent.levels_of(row.split, row.agent)), row.episodes


def _players(row: Score | ExplorationRow, agent: AgentDescription) -> Sequence[str]:
    """Return the policies that played a row: one, those of the ensemble with the row's settings, or all."""
    name, text = _words(row)
    if name in agent.policies:
        return [name]
    if agent.consensus is None or name != agent.algo:
        return list(agent.policies)  # an agent that the user registered
    settings = read_settings(text)
    changes: dict[str, Any] = {name: settings[name] for name in ("vote", "fallback") if name in settings}
    if size := count_of(settings.get("ensemble_size", "")):
        changes["ensemble_size"] = min(size, len(agent.members))
    config = replace(agent.consensus, **{"vote": ALGORITHM_1.vote, **changes})
    return policy_names(agent, config) if config.vote in KINDS else []


def _words(row: Score | ExplorationRow) -> tuple[str, str]:
    """Return the name of a row's agent and its settings, which files of earlier versions have in the name."""
    name, _, settings = f"{row.agent} {row.settings}".strip().partition(" ")
    return name, settings
