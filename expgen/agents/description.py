"""AgentDescription: what an agent is made of, as `agent.json` holds it.

Policies are named by the folders of their checkpoints, relative to the folder that the file lies in and never outside
it, so that an agent moves with its folder and a file from elsewhere reads nothing else.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from expgen.agents.consensus import CONSENSUS_SETTINGS, ConsensusConfig, changed_consensus
from expgen.algorithms.recipes import recipe_of
from expgen.envs.levels import LevelSet
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError, check_choice, check_range
from expgen.files import join_inside
from expgen.networks.actor_critic import NetworkConfig
from expgen.settings import LAST_SEED, check_plain_fields, config_from_values
from expgen.training.average import Weights

AGENT_FILE = "agent.json"
EXPLORER = "explorer"


def explorer_name(index: int) -> str:
    """explorer, explorer1, explorer2, …"""
    return f"{EXPLORER}{index or ''}"


@dataclass(frozen=True)
class PolicyDescription:
    """One trained policy."""

    path: str  # the folder of its checkpoints
    algo: str  # that trained it
    seed: int
    levels: LevelSet  # that it trained on
    network: NetworkConfig
    algorithm: Any  # settings of `algo`
    reward: Any  # settings of the reward that it learnt from
    mirror: bool = False  # whether its games were shown mirrored too
    recolor: bool = False  # and in other colours

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "PolicyDescription":
        """From the plain data that `plain` makes of one; KeyError or TypeError where it is none."""
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
    """Members, the explorers they fall back on, and how they vote.

    Without members the explorers play by themselves. Without `consensus` nobody votes: the members are agents of their
    own, of which `member0` is meant by default.
    """

    folder: Path  # where the paths of policies begin
    algo: str  # by which score rows know it
    seed: int
    env: str
    options: Mapping[str, Any]  # of the environment
    spec: EnvSpec
    levels: LevelSet  # that any of its policies may have trained on
    test_levels: LevelSet  # to score it on; `all` are all others
    members: tuple[PolicyDescription, ...]
    explorers: tuple[PolicyDescription, ...] = ()
    consensus: ConsensusConfig | None = None
    weights: Weights = "live"  # that play: those of the policies, or their averages where they have them
    tuned: tuple[str, ...] = ()  # settings that `expgen tune` picked

    @property
    def game(self) -> str:
        """The game's own name: `maze` for `procgen:maze`."""
        return self.env.partition(":")[2] or self.env

    @property
    def policies(self) -> dict[str, PolicyDescription]:
        """By name: member0, member1, …, and the explorers."""
        named = {f"member{index}": member for index, member in enumerate(self.members)}
        return named | {explorer_name(index): explorer for index, explorer in enumerate(self.explorers)}

    @property
    def has_unseen_levels(self) -> bool:
        """Whether anything is left to be tested on; not where an environment knows no levels and plays `all`."""
        return self.levels.seeds is not None

    @property
    def test_set(self) -> LevelSet:
        """The levels to score it on, less those trained on."""
        whole = self.test_levels.seeds is None and self.has_unseen_levels
        return self.test_levels.without(self.levels) if whole else self.test_levels

    def checkpoints_of(self, name: str) -> Path:
        """The folder of one policy's checkpoints."""
        return join_inside(self.folder, self.policies[name].path)

    def trained(self) -> list[str]:
        """Names of the policies that have a checkpoint."""
        return [name for name in self.policies if any(self.checkpoints_of(name).glob("*.safetensors"))]

    @staticmethod
    def from_json(folder: Path, data: Mapping[str, Any]) -> "AgentDescription":
        """From the plain data that `plain` makes of one; KeyError, TypeError or InputError where it is none."""
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
        if not agent.members and (consensus is None or not agent.explorers):
            raise InputError("members is empty; accepted: 1 policy or more, or explorers alone and a consensus")
        for name in agent.policies:
            agent.checkpoints_of(name)  # refuses paths that lead outside
        if agent.has_unseen_levels and agent.test_set.overlaps(agent.levels):
            overlap = f"test_levels {agent.test_levels} overlap the training levels {agent.levels}"
            raise InputError(f"{overlap}; accepted: levels that no policy trained on")
        if agent.consensus is not None:
            changed_consensus(agent.consensus, {}, len(agent.members))
        return agent


def plain(agent: AgentDescription | PolicyDescription) -> dict[str, Any]:
    """Plain data, without the folder."""
    return json.loads(json.dumps(agent, default=_plain))


def _plain(part: Any) -> Any:
    """A dataclass as its fields; level sets and the like as their text."""
    if isinstance(part, LevelSet) or not dataclasses.is_dataclass(part):
        return str(part)
    return {entry.name: getattr(part, entry.name) for entry in dataclasses.fields(part) if entry.name != "folder"}


def with_policy_paths(agent: AgentDescription, folder: Path, paths: Mapping[str, str]) -> AgentDescription:
    """The agent in another folder, where its policies have other paths; those without one are left out."""
    moved = {name: replace(policy, path=paths[name]) for name, policy in agent.policies.items() if name in paths}
    explorers = tuple(moved.pop(name) for name in list(moved) if name.startswith(EXPLORER))
    return replace(agent, folder=folder, members=tuple(moved.values()), explorers=explorers)


def agent_text(agent: AgentDescription) -> str:
    """The text of `agent.json`: a line for each setting and each policy."""
    text = {name: json.dumps(value, ensure_ascii=False) for name, value in plain(agent).items()}
    for name in ("members", "explorers"):
        policies = ",\n    ".join(json.dumps(plain(policy), ensure_ascii=False) for policy in getattr(agent, name))
        text[name] = f"[\n    {policies}\n  ]" if policies else "[]"
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {value}" for name, value in text.items()) + "\n}\n"
