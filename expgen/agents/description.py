"""AgentDescription: what an agent is made of, as `agent.json` holds it.

Policies are named by the folders of their checkpoints, relative to the folder that the file lies in and never outside
it, so that an agent moves with its folder and a file from elsewhere reads nothing else.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from expgen.agents.consensus import ConsensusConfig, changed_consensus
from expgen.algorithms.algorithm import recipe_of
from expgen.config_tree import filled
from expgen.envs.levels import LevelSet
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError, check_choice
from expgen.networks.actor_critic import NetworkConfig
from expgen.training.average import Weights

AGENT_FILE = "agent.json"
EXPLORER = "explorer"


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

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        parts = {name: dataclasses.asdict(getattr(self, name)) for name in ("network", "algorithm", "reward")}
        return {"path": self.path, "algo": self.algo, "seed": self.seed, "levels": str(self.levels), **parts}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "PolicyDescription":
        """The inverse of `to_json`; KeyError or TypeError where something is missing."""
        recipe = recipe_of(str(data["algo"]))
        return PolicyDescription(
            str(data["path"]),
            str(data["algo"]),
            int(data["seed"]),
            LevelSet.parse(str(data["levels"]), "levels"),
            filled(recipe.network, data["network"], "network"),
            filled(recipe.config, data["algorithm"], "algorithm"),
            filled(recipe.reward, data["reward"], "reward"),
        )


@dataclass(frozen=True)
class AgentDescription:
    """Members, the explorer they fall back on, and how they vote.

    Without `consensus` nobody votes: the members are agents of their own, of which `member0` is meant by default.
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
    explorer: PolicyDescription | None = None
    consensus: ConsensusConfig | None = None
    weights: Weights = "live"  # that play: those of the policies, or their averages where they have them
    tuned: tuple[str, ...] = field(default=())  # settings that `expgen tune` picked

    @property
    def game(self) -> str:
        """The game's own name: `maze` for `procgen:maze`."""
        return self.env.partition(":")[2] or self.env

    @property
    def policies(self) -> dict[str, PolicyDescription]:
        """By name: member0, member1, …, and the explorer."""
        named = {f"member{index}": member for index, member in enumerate(self.members)}
        return named | ({EXPLORER: self.explorer} if self.explorer is not None else {})

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

    def to_json(self) -> dict[str, Any]:
        """Plain data, without the folder."""
        return {
            "algo": self.algo,
            "seed": self.seed,
            "env": self.env,
            "options": dict(self.options),
            "spec": dataclasses.asdict(self.spec),
            "levels": str(self.levels),
            "test_levels": str(self.test_levels),
            "members": [member.to_json() for member in self.members],
            "explorer": None if self.explorer is None else self.explorer.to_json(),
            "consensus": None if self.consensus is None else dataclasses.asdict(self.consensus),
            "weights": self.weights,
            "tuned": list(self.tuned),
        }

    @staticmethod
    def from_json(folder: Path, data: Mapping[str, Any]) -> "AgentDescription":
        """The inverse of `to_json`; KeyError or TypeError where something is missing, InputError where it is wrong."""
        explorer, consensus = data["explorer"], data["consensus"]
        members = tuple(PolicyDescription.from_json(member) for member in data["members"])
        if not members:
            raise InputError("members is empty; accepted: 1 policy or more")
        described = AgentDescription(
            folder,
            str(data["algo"]),
            int(data["seed"]),
            str(data["env"]),
            dict(data["options"]),
            EnvSpec.from_json(data["spec"]),
            LevelSet.parse(str(data["levels"]), "levels"),
            LevelSet.parse(str(data["test_levels"]), "test_levels"),
            members,
            None if explorer is None else PolicyDescription.from_json(explorer),
            None if consensus is None else filled(ConsensusConfig(), consensus, "consensus"),
            check_choice("weights", str(data.get("weights", "live")), get_args(Weights)),  # type: ignore[arg-type]
            tuple(map(str, data.get("tuned", ()))),
        )
        for name in described.policies:
            described.checkpoints_of(name)  # refuses paths that lead outside
        if described.consensus is not None:
            changed_consensus(described.consensus, {}, len(members))
        return described


def with_policy_paths(agent: AgentDescription, folder: Path, paths: Mapping[str, str]) -> AgentDescription:
    """The agent in another folder, where its policies have other paths; those without one are left out."""
    moved = {name: replace(policy, path=paths[name]) for name, policy in agent.policies.items() if name in paths}
    explorer = moved.pop(EXPLORER, None)
    return replace(agent, folder=folder, members=tuple(moved.values()), explorer=explorer)


def agent_text(agent: AgentDescription) -> str:
    """The text of `agent.json`: a line for each setting and each policy."""
    data = agent.to_json()
    lines = []
    for name, value in data.items():
        text = json.dumps(value, ensure_ascii=False)
        if name == "members":
            text = "[\n    " + ",\n    ".join(json.dumps(member, ensure_ascii=False) for member in value) + "\n  ]"
        lines.append(f"  {json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def join_inside(folder: Path, path: str) -> Path:
    """`folder` / `path`; an InputError where a path from a file would lead out of the folder."""
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts:
        raise InputError(f"path is {path!r}; accepted: one inside {folder}, as checkpoints/member0")
    return folder / parts
