"""AgentDescription: the content of `agent.json`, which lists the policies of an agent and how they vote.

Each policy is given by its checkpoint folder, relative to the folder of the file. Paths that leave this folder are
rejected, so an agent can be moved with its folder, and an untrusted file cannot read other files.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from expgen.agents.consensus import CONSENSUS_SETTINGS, ConsensusConfig
from expgen.agents.temperature import AS_TRAINED, checked_temperature
from expgen.agents.vote_kinds import changed_consensus, kind_of
from expgen.algorithms.recipes import recipe_of
from expgen.envs.levels import SPLITS, LevelSet, Split
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError, check_choice, check_range
from expgen.files import join_inside
from expgen.networks.actor_critic import NetworkConfig
from expgen.settings import LAST_SEED, check_plain_fields, config_from_values
from expgen.training.average import Weights

AGENT_FILE = "agent.json"
EXPLORER = "explorer"


def explorer_name(index: int) -> str:
    """Return `explorer`, `explorer1`, `explorer2`, …"""
    return f"{EXPLORER}{index or ''}"


@dataclass(frozen=True)
class PolicyDescription:
    """One trained policy."""

    path: str  # its checkpoint folder
    algo: str  # the algorithm that trained it
    seed: int
    levels: LevelSet  # training levels
    network: NetworkConfig
    algorithm: Any  # settings of `algo`
    reward: Any  # settings of its reward
    mirror: bool = False  # trained with mirrored games
    recolor: bool = False  # trained with recoloured games
    level_replay: bool = False  # trained with level replay, which `algo` leaves out

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "PolicyDescription":
        """Parse the output of `to_json`; raise InputError, KeyError or TypeError if it is invalid."""
        check_plain_fields(PolicyDescription, data, "a policy")
        recipe = recipe_of(str(data["algo"]))
        parts = {
            "levels": LevelSet.parse(str(data["levels"])),
            "network": config_from_values(recipe.network, data["network"], "network"),
            "algorithm": config_from_values(recipe.config, data["algorithm"], "algorithm"),
            "reward": config_from_values(recipe.reward, data["reward"], "reward"),
        }
        return PolicyDescription(**{**data, **parts})


@dataclass(frozen=True)
class AgentDescription:
    """The members, the explorers and the settings of the vote.

    Without members the explorers play alone. Without `consensus` there is no ensemble: each member is an agent, and
    `member0` is the default one.
    """

    folder: Path  # base folder of the policies' paths
    algo: str  # its name in score rows
    seed: int
    env: str
    options: Mapping[str, Any]  # of the environment
    spec: EnvSpec
    levels: LevelSet  # training levels of all its policies together
    test_levels: LevelSet  # levels to evaluate it on; `all` means all levels but the training levels
    members: tuple[PolicyDescription, ...]
    explorers: tuple[PolicyDescription, ...] = ()
    consensus: ConsensusConfig | None = None
    weights: Weights = "live"  # weights to play with; "average" applies to the policies that have an average
    temperature: float = AS_TRAINED  # of its policies (agents.temperature)
    explorer_temperature: float | None = None  # of its explorers, if it has members too; None: `temperature`
    tuned: tuple[str, ...] = ()  # names of the settings of the vote that `expgen tune` chose

    @property
    def game(self) -> str:
        """The game without its family: `maze` for `procgen:maze`."""
        return self.env.partition(":")[2] or self.env

    @property
    def policies(self) -> dict[str, PolicyDescription]:
        """Policies by name: member0, member1, …, explorer, explorer1, …"""
        named = {f"member{index}": member for index, member in enumerate(self.members)}
        return named | {explorer_name(index): explorer for index, explorer in enumerate(self.explorers)}

    @property
    def has_vote(self) -> bool:
        """Whether its members vote on the action."""
        return self.consensus is not None and kind_of(self.consensus, len(self.members)).has_vote

    @property
    def has_unseen_levels(self) -> bool:
        """Whether levels remain for testing; False for environments without levels, which train on `all`."""
        return self.levels.seeds is not None

    @property
    def test_set(self) -> LevelSet:
        """The levels to evaluate it on: `test_levels` without the training levels."""
        is_all = self.test_levels.seeds is None and self.has_unseen_levels
        return self.test_levels.without(self.levels) if is_all else self.test_levels

    @property
    def splits(self) -> Sequence[Split]:
        """The splits to score it on: training levels and, if there are any, unseen ones."""
        return SPLITS if self.has_unseen_levels else SPLITS[:1]

    def levels_of(self, split: Split, name: str = "") -> LevelSet:
        """Return the levels of a split; the training levels of the policy `name` may be a bootstrap sample."""
        return self.policies.get(name, self).levels if split == "train" else self.test_set

    @property
    def leader(self) -> str:
        """The name of the member that leads the vote, or of the first member without a vote."""
        return f"member{self.consensus.leader if self.consensus else 0}"

    def temperature_of(self, name: str) -> float:
        """Return the temperature of a policy."""
        own = self.explorer_temperature if name.startswith(EXPLORER) else None
        return self.temperature if own is None else own

    def checkpoints_of(self, name: str) -> Path:
        """Return the checkpoint folder of a policy; raise InputError if it is outside the agent's folder."""
        return join_inside(self.folder, self.policies[name].path)

    def trained(self) -> list[str]:
        """Return the names of the policies that have a checkpoint."""
        return [name for name in self.policies if any(self.checkpoints_of(name).glob("*.safetensors"))]

    @staticmethod
    def from_json(folder: Path, data: Mapping[str, Any]) -> "AgentDescription":
        """Parse the output of `to_json`; raise InputError, KeyError or TypeError if it is invalid."""
        check_plain_fields(AgentDescription, data, "the agent", without=("folder",))
        consensus = data["consensus"]
        parts = {
            "spec": EnvSpec.from_json(data["spec"]),
            "levels": LevelSet.parse(str(data["levels"])),
            "test_levels": LevelSet.parse(str(data["test_levels"]), "test_levels"),
            "members": tuple(map(PolicyDescription.from_json, data["members"])),
            "explorers": tuple(map(PolicyDescription.from_json, data["explorers"])),
            "consensus": None if consensus is None else config_from_values(ConsensusConfig(), consensus, "consensus"),
            "weights": check_choice("weights", data["weights"], get_args(Weights)),
            "tuned": tuple(check_choice("tuned", name, CONSENSUS_SETTINGS) for name in data["tuned"]),
        }
        agent = AgentDescription(folder, **{**data, **parts})
        check_range("seed", agent.seed, 0, LAST_SEED)
        checked_temperature(agent.temperature, "temperature")
        if agent.explorer_temperature is not None:
            checked_temperature(agent.explorer_temperature, "explorer_temperature")
            if not (agent.members and agent.explorers):
                needs = "the agent needs both members and explorers"
                raise InputError(f"explorer_temperature is {agent.explorer_temperature} but {needs}; accepted: null")
        if not agent.members and (consensus is None or not agent.explorers):
            raise InputError("members is empty; accepted: 1 policy or more, or explorers with a consensus")
        for name in agent.policies:
            agent.checkpoints_of(name)  # rejects paths outside the folder
        if agent.has_unseen_levels and agent.test_set.overlaps(agent.levels):
            overlap = f"test_levels is {agent.test_levels}, which overlaps the training levels {agent.levels}"
            raise InputError(f"{overlap}; accepted: levels that no policy trained on")
        if agent.consensus is not None:
            changed_consensus(agent.consensus, {}, len(agent.members))
        return agent


def to_json(agent: AgentDescription | PolicyDescription) -> dict[str, Any]:
    """Return the description as JSON data, without the folder."""
    return json.loads(json.dumps(agent, default=_to_json))


def _to_json(part: Any) -> Any:
    """Return the fields of a dataclass, or the text of a level set or other object."""
    if isinstance(part, LevelSet) or not dataclasses.is_dataclass(part):
        return str(part)
    return {entry.name: getattr(part, entry.name) for entry in dataclasses.fields(part) if entry.name != "folder"}


def with_temperatures(
    agent: AgentDescription, temperature: float | None, explorer_temperature: float | None = None
) -> AgentDescription:
    """Return the agent at these temperatures; None leaves one as it is."""
    if temperature is not None:
        agent = replace(agent, temperature=checked_temperature(temperature))
    if explorer_temperature is not None:
        own = checked_temperature(explorer_temperature, "--explorer-temperature")
        agent = replace(agent, explorer_temperature=own)
    return agent


def with_policy_paths(agent: AgentDescription, folder: Path, paths: Mapping[str, str]) -> AgentDescription:
    """Return the agent for another `folder`, with only the policies in `paths`, at these paths."""
    moved = {name: replace(policy, path=paths[name]) for name, policy in agent.policies.items() if name in paths}
    explorers = tuple(moved.pop(name) for name in list(moved) if name.startswith(EXPLORER))
    members = tuple(moved.values())
    if not (members and explorers):
        temperature = agent.temperature if members else agent.temperature_of(EXPLORER)
        agent = replace(agent, temperature=temperature, explorer_temperature=None)
    return replace(agent, folder=folder, members=members, explorers=explorers)


def agent_text(agent: AgentDescription) -> str:
    """Return the text of `agent.json`, with one line per setting and per policy."""
    text = {name: json.dumps(value, ensure_ascii=False) for name, value in to_json(agent).items()}
    for name in ("members", "explorers"):
        policies = ",\n    ".join(json.dumps(to_json(policy), ensure_ascii=False) for policy in getattr(agent, name))
        text[name] = f"[\n    {policies}\n  ]" if policies else "[]"
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {value}" for name, value in text.items()) + "\n}\n"
