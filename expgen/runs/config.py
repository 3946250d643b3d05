"""TrainConfig: every setting that decides what a run trains, as flags, as JSON and as Python arguments."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from expgen.agents.description import EXPLORER as EXPLORER  # also the prefix of its settings
from expgen.algorithms.ppo import PPOConfig
from expgen.algorithms.recipes import recipe_of
from expgen.envs.levels import LevelSet
from expgen.envs.make import MAX_ENVS
from expgen.errors import InputError
from expgen.evaluation.evaluate import MAX_EPISODES
from expgen.networks.actor_critic import NetworkConfig
from expgen.networks.impala import Precision
from expgen.reward.knn import KnnConfig
from expgen.reward.source import GameRewardConfig
from expgen.rollout.level_replay import ReplayConfig
from expgen.settings import (
    LAST_SEED,
    apply_overrides,
    check_config,
    check_type,
    config_from_values,
    digest_values,
    flag_of,
    flatten,
    later_setting,
    setting,
    to_python_number,
)

REMOVED = ("consensus", "keep_at")  # fields that earlier versions wrote and that do not affect training
REPLAY = ("level_replay", "replay")  # fields of a run with level replay alone, which others neither write nor digest

# Upper limits, so that a config from an untrusted file cannot exhaust the memory
MAX_LEARNERS, MAX_STEPS, MAX_ROLLOUT_STEPS = 10_000, 10**15, 2**20


def average_setting() -> Any:
    """Return the setting `average`, which members and explorers have."""
    text = "also keep an exponential average of the weights with this decay per update, such as 0.99; 0: no average"
    return later_setting(0.0, text, low=0, high=0.9999)


@dataclass(frozen=True)
class ExplorerConfig:
    """The explorer trained with an ensemble, as `--algo maxent` trains it; its flags begin with --explorer-."""

    steps: int = setting(100_000_000, "environment steps", low=1, high=MAX_STEPS)
    envs: int = setting(0, "environments; 0: as many as a member has", low=0, high=MAX_ENVS)
    rollout_steps: int = setting(512, "steps of each environment per rollout", low=1, high=MAX_ROLLOUT_STEPS)
    count: int = later_setting(1, "number of explorers, which act in turn", low=1, high=MAX_LEARNERS)
    average: float = average_setting()
    network: NetworkConfig = NetworkConfig()
    algorithm: PPOConfig = PPOConfig()
    reward: KnnConfig = KnnConfig()


@dataclass(frozen=True)
class TrainConfig:
    """One run: learners of the same kind with different seeds and, for an ensemble, explorers."""

    algo: str = setting("ppo", "algorithm")
    env: str = setting("minimaze", "minimaze, procgen:GAME, gymnasium:ID or envpool:ID")
    levels: str = setting("200", "training levels: COUNT, START:COUNT or A,B,C")
    test_levels: str = setting(
        "all", "unseen levels for test scores: START:COUNT, A,B,C, or all but the training levels"
    )
    member_levels: Literal["all", "bootstrap"] = setting(
        "all", "levels of each learner: all training levels, or a bootstrap sample of them"
    )
    seed: int = setting(
        0, "random seed of the first learner; the next ones use seed + 1, seed + 2, …", low=0, high=LAST_SEED
    )
    members: int = setting(1, "number of learners", low=1, high=MAX_LEARNERS)
    steps: int = setting(25_000_000, "environment steps of each learner", low=1, high=MAX_STEPS)
    envs: int = setting(32, "environments of each learner", low=1, high=MAX_ENVS)
    rollout_steps: int = setting(512, "steps of each environment per rollout", low=1, high=MAX_ROLLOUT_STEPS)
    average: float = average_setting()
    mirror: bool = later_setting(False, "augmentation: show a share of the games mirrored (mazes also rotated)")
    recolor: bool = later_setting(False, "augmentation: show a share of the games with permuted colour channels")
    level_replay: bool = setting(False, "members draw levels by the size of their advantages, as --algo plr does")
    precision: Precision = later_setting(
        "auto",
        "arithmetic of impala and impoola: auto is bfloat16 on a GPU, else float32; some CPUs are faster in bfloat16",
    )
    eval_every: int = setting(
        2_500_000, "steps between scores on training and test levels; 0: never", low=0, high=MAX_STEPS
    )
    eval_episodes: int = setting(200, "episodes per score", low=1, high=MAX_EPISODES)
    checkpoint_seconds: float = setting(60.0, "seconds between checkpoints", low=0)
    options: Mapping[str, Any] = field(default_factory=dict, metadata={"help": "options of the environment"})
    network: NetworkConfig = NetworkConfig()
    algorithm: Any = PPOConfig()  # the config class of `algo`
    reward: GameRewardConfig | KnnConfig = GameRewardConfig()
    replay: ReplayConfig | None = None  # of `level_replay`; None if the algorithm chooses the levels itself
    explorer: ExplorerConfig | None = dataclasses.field(default=None, metadata={"is_prefix": True})

    def envs_of(self, part: "TrainConfig | ExplorerConfig") -> int:
        """Return the number of environments of a member or an explorer."""
        return part.envs or self.envs

    @property
    def game(self) -> str:
        """The game's name: `maze` for `procgen:maze`."""
        return self.env.partition(":")[2] or self.env

    @property
    def train_set(self) -> LevelSet:
        """The training levels."""
        return LevelSet.parse(self.levels, "--levels")

    @property
    def test_set(self) -> LevelSet:
        """The test levels; `all` means all but the training levels."""
        test = LevelSet.parse(self.test_levels, "--test-levels")
        return test.without(self.train_set) if test.seeds is None and self.has_unseen_levels else test

    @property
    def has_unseen_levels(self) -> bool:
        """Whether there are unseen levels; False for environments without levels, which train on `all`."""
        return self.train_set.seeds is not None

    def to_json(self) -> dict[str, Any]:
        """Return the config as plain data."""
        return self._without_unused_replay(dataclasses.asdict(self))

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "TrainConfig":
        """Return the config from plain data; raise InputError if a field is invalid."""
        if not isinstance(data, Mapping):
            raise InputError(f"config is {data!r:.80}; accepted: an object, as in a config.json that expgen wrote")
        values = {name: value for name, value in data.items() if name not in REMOVED}
        return config_from_values(default_config(str(data.get("algo"))), values, "config")

    def digest(self) -> str:
        """Return twelve hex digits that identify this config in results/.

        Earlier configs had a field `consensus`, which was None without an ensemble; it stays part of the digest.
        """
        values = {**self._without_unused_replay(digest_values(self)), "consensus": None}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]

    def _without_unused_replay(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if self.level_replay or name not in REPLAY}


def default_config(algo: str) -> TrainConfig:
    """Return the default config of `algo`."""
    recipe = recipe_of(algo)
    config = TrainConfig(algo=algo, network=recipe.network, algorithm=recipe.config, reward=recipe.reward)
    config = dataclasses.replace(config, replay=recipe.replay, **recipe.run)
    if recipe.explorer is None:
        return config
    explores = recipe_of(recipe.explorer)
    envs = TrainConfig.envs if recipe.run else 0  # 0: as many as a member, unless the members' recipe changes theirs
    explorer = ExplorerConfig(envs=envs, network=explores.network, algorithm=explores.config, reward=explores.reward)
    return dataclasses.replace(config, members=10, explorer=explorer)


def with_values(config: TrainConfig, values: Mapping[str, Any]) -> TrainConfig:
    """Return `config` with settings replaced, also in nested configs: names are unique across the tree.

    Settings of the explorer begin with `explorer_`.
    """
    changed, unknown = apply_overrides(config, {name: _normalized(name, value) for name, value in values.items()})
    if unknown:
        name = next(iter(unknown))
        raise InputError(f"setting {name!r} is unknown to --algo {config.algo}; see expgen train --help all")
    return changed


def _normalized(name: str, value: Any) -> Any:
    """Return a setting as config.json stores it: level sets given as numbers or ranges become text."""
    value = to_python_number(value)
    if name not in ("levels", "test_levels") or isinstance(value, str):
        check_type(flag_of(name), value, (str, int, float, Mapping, type(None)), "text or a number")
        return value
    return str(value) if type(value) is int else str(LevelSet.parse(value, flag_of(name)))


# Options of ProcGen that ignore the level set: one fixed level, or each level derived from the one before.
WITHOUT_LEVEL_SET = (("distribution_mode", "exploration"), ("use_sequential_levels", True))


def validated(config: TrainConfig) -> TrainConfig:
    """Return `config`; raise InputError if it is invalid."""
    recipe = recipe_of(config.algo)
    check_config(config)
    for name in ("mirror", "recolor"):
        if recipe.splits_envs and getattr(config, name):
            what = f"{flag_of(name)} is True but {config.algo} splits the environments among its members"
            raise InputError(f"{what}, so each would see some of the views only; accepted: False")
    if not config.has_unseen_levels and not config.env.startswith("envpool:"):
        raise InputError("--levels is 'all'; accepted: a finite set, so that test levels are unseen")
    if config.has_unseen_levels and config.test_set.overlaps(config.train_set):
        raise InputError(f"--test-levels {config.test_levels} overlap --levels {config.levels}; accepted: disjoint")
    for option, value in WITHOUT_LEVEL_SET:
        if config.options.get(option) == value:
            raise InputError(f"--option {option}={value} ignores the level set; accepted: a value that uses it")
    _check_replay(config)
    _check_sizes(config, config, "")
    if config.explorer is not None:
        _check_sizes(config, config.explorer, f"{EXPLORER}_")
        if config.network.memory != "none":
            raise InputError(f"--memory is {config.network.memory}; accepted for members of an ensemble: none")
    learners = max(config.members, config.explorer.count if config.explorer else 0)
    if config.seed + learners > 2**31:
        raise InputError(f"--seed is {config.seed}; accepted for {learners} learners: 0 to {2**31 - learners}")
    return config


def _check_replay(config: TrainConfig) -> None:
    """Check that level replay is off if the algorithm chooses the levels, and on if its settings are changed."""
    if config.replay is None:
        if config.level_replay:
            raise InputError(f"--level-replay is True but {config.algo} chooses its levels itself; accepted: False")
        return
    for name, default in flatten(ReplayConfig()).items():
        if not config.level_replay and (value := getattr(config.replay, name)) != default:
            raise InputError(f"{flag_of(name)} is {value} without --level-replay; accepted: with --level-replay")


def _check_sizes(config: TrainConfig, part: TrainConfig | ExplorerConfig, prefix: str) -> None:
    """Check steps and minibatches of members, or of explorers, whose flags begin with `prefix`."""
    envs, algorithm = config.envs_of(part), part.algorithm
    rollout = envs * part.rollout_steps
    if part.steps < rollout:
        raise InputError(f"{flag_of(prefix + 'steps')} is {part.steps}; accepted: {rollout} (one rollout) or more")
    has_columns = getattr(algorithm, "minibatch_order", "columns") == "columns"
    limit, what = (envs, "--envs") if has_columns else (rollout, "the transitions of a rollout")
    if (minibatches := getattr(algorithm, "minibatches", 1)) > limit:
        raise InputError(f"{flag_of(prefix + 'minibatches')} is {minibatches}; accepted: at most {what} ({limit})")
