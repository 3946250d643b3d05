"""TrainConfig: everything that decides what a run trains, frozen and checked, as flags, as JSON and as Python alike."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from expgen.agents.description import EXPLORER as EXPLORER  # its settings carry this before their name
from expgen.algorithms.ppo import PPOConfig
from expgen.algorithms.recipes import recipe_of
from expgen.envs.levels import LevelSet
from expgen.envs.make import MAX_ENVS
from expgen.errors import InputError
from expgen.evaluation.evaluate import MAX_EPISODES
from expgen.networks.actor_critic import NetworkConfig
from expgen.reward.knn import KnnConfig
from expgen.reward.source import GameRewardConfig
from expgen.settings import (
    LAST_SEED,
    apply_overrides,
    check_config,
    check_type,
    config_from_values,
    digest_values,
    flag_of,
    later_setting,
    setting,
    to_python_number,
)

REMOVED = ("consensus", "keep_at")  # fields that earlier versions wrote and that train nothing

# What can be meant; more, as a stranger's file may say, would fill any memory
MOST_LEARNERS, MOST_STEPS, MOST_ROLLOUT_STEPS = 10_000, 10**15, 2**20


def average_setting() -> Any:
    """The same for members and for the explorer."""
    text = "keep averaged weights too, of which each update leaves this share, as 0.99; 0 keeps none"
    return later_setting(0.0, text, low=0, high=0.9999)


@dataclass(frozen=True)
class ExplorerConfig:
    """The explorer trained beside an ensemble: what `--algo maxent` trains, under flags that begin with --explorer-."""

    steps: int = setting(100_000_000, "environment steps", low=1, high=MOST_STEPS)
    envs: int = setting(0, "environments; 0: as many as a member has", low=0, high=MAX_ENVS)
    rollout_steps: int = setting(512, "steps of every environment between two updates", low=1, high=MOST_ROLLOUT_STEPS)
    count: int = later_setting(1, "explorers trained side by side, which take turns in play", low=1, high=MOST_LEARNERS)
    average: float = average_setting()
    network: NetworkConfig = NetworkConfig()
    algorithm: PPOConfig = PPOConfig()
    reward: KnnConfig = KnnConfig()


@dataclass(frozen=True)
class TrainConfig:
    """One run: one or more learners of the same kind that differ in their seed and, beside an ensemble, an explorer."""

    algo: str = setting("ppo", "algorithm")
    env: str = setting("minimaze", "minimaze, procgen:GAME, gymnasium:ID or envpool:ID")
    levels: str = setting("200", "training levels: COUNT, START:COUNT or A,B,C")
    test_levels: str = setting("all", "levels to score on, never trained on: START:COUNT, A,B,C, or all (the others)")
    member_levels: Literal["all", "bootstrap"] = setting(
        "all", "what each learner trains on: all training levels, or those a bootstrap of its own draws from them"
    )
    seed: int = setting(
        0, "random seed of the first learner; the next ones use seed + 1, seed + 2, …", low=0, high=LAST_SEED
    )
    members: int = setting(1, "learners trained side by side", low=1, high=MOST_LEARNERS)
    steps: int = setting(25_000_000, "environment steps of each learner", low=1, high=MOST_STEPS)
    envs: int = setting(32, "environments of each learner", low=1, high=MAX_ENVS)
    rollout_steps: int = setting(512, "steps of every environment between two updates", low=1, high=MOST_ROLLOUT_STEPS)
    average: float = average_setting()
    mirror: bool = later_setting(
        False, "show a share of the games mirrored (mazes turned too), to learn from more levels than there are"
    )
    recolor: bool = later_setting(
        False, "show a share of the games with red, green and blue exchanged, in all six orders"
    )
    eval_every: int = setting(
        2_500_000, "score on train and test levels every so many steps; 0 for never", low=0, high=MOST_STEPS
    )
    eval_episodes: int = setting(200, "episodes of each such score", low=1, high=MAX_EPISODES)
    checkpoint_seconds: float = setting(60.0, "seconds between checkpoints", low=0)
    options: Mapping[str, Any] = field(default_factory=dict, metadata={"help": "options of the environment"})
    network: NetworkConfig = NetworkConfig()
    algorithm: Any = PPOConfig()  # of the algorithm's own kind
    reward: GameRewardConfig | KnnConfig = GameRewardConfig()
    explorer: ExplorerConfig | None = dataclasses.field(default=None, metadata={"is_prefix": True})

    def envs_of(self, part: "TrainConfig | ExplorerConfig") -> int:
        """Environments of a member, or of the explorer."""
        return part.envs or self.envs

    @property
    def game(self) -> str:
        """The game's own name: `maze` for `procgen:maze`."""
        return self.env.partition(":")[2] or self.env

    @property
    def train_set(self) -> LevelSet:
        """The levels learnt from."""
        return LevelSet.parse(self.levels, "--levels")

    @property
    def test_set(self) -> LevelSet:
        """The levels scored on; `all` means all but the training levels."""
        test = LevelSet.parse(self.test_levels, "--test-levels")
        return test.without(self.train_set) if test.seeds is None and self.has_unseen_levels else test

    @property
    def has_unseen_levels(self) -> bool:
        """Whether anything is left to be tested on; not where an environment knows no levels and plays `all`."""
        return self.train_set.seeds is not None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "TrainConfig":
        """The inverse of `to_json`; an InputError names what does not fit."""
        if not isinstance(data, Mapping):
            raise InputError(f"config is {data!r:.80}; accepted: an object, as in a config.json that expgen wrote")
        trains = {name: value for name, value in data.items() if name not in REMOVED}
        return config_from_values(default_config(str(data.get("algo"))), trains, "config")

    def digest(self) -> str:
        """Twelve hex digits that name this config in results/.

        `consensus` was a field of configs once, without a value in those of one policy: they keep their digests.
        """
        decisive = {**digest_values(self), "consensus": None}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:12]


def default_config(algo: str) -> TrainConfig:
    """The defaults of `algo`."""
    recipe = recipe_of(algo)
    config = TrainConfig(algo=algo, network=recipe.network, algorithm=recipe.config, reward=recipe.reward)
    config = dataclasses.replace(config, **recipe.run)
    if recipe.explorer is None:
        return config
    other = recipe_of(recipe.explorer)
    envs = TrainConfig.envs if recipe.run else 0  # an explorer is the same whoever it is trained beside
    explorer = ExplorerConfig(envs=envs, network=other.network, algorithm=other.config, reward=other.reward)
    return dataclasses.replace(config, members=10, explorer=explorer)


def with_values(config: TrainConfig, values: Mapping[str, Any]) -> TrainConfig:
    """`config` with some settings replaced, wherever in the tree they stand: names are unique across it.

    Those of the explorer beside an ensemble begin with `explorer_`.
    """
    changed, left = apply_overrides(config, {name: _as_text(name, value) for name, value in values.items()})
    if left:
        raise InputError(
            f"setting {next(iter(left))!r} is unknown to --algo {config.algo}; see expgen train --help all"
        )
    return changed


def _as_text(name: str, value: Any) -> Any:
    """Levels as the text that config.json keeps, also where Python gave numbers or ranges."""
    value = to_python_number(value)
    if name not in ("levels", "test_levels") or isinstance(value, str):
        check_type(flag_of(name), value, (str, int, float, Mapping, type(None)), "text or a number")
        return value
    return str(value) if type(value) is int else str(LevelSet.parse(value, flag_of(name)))


# Options of ProcGen under which a level set means nothing: one fixed level, or levels that follow from the last.
UNSPLITTABLE = (("distribution_mode", "exploration"), ("use_sequential_levels", True))


def checked(config: TrainConfig) -> TrainConfig:
    """`config`, or an InputError that says what is wrong with it."""
    recipe_of(config.algo)
    check_config(config)
    if not config.has_unseen_levels and not config.env.startswith("envpool:"):
        raise InputError("--levels is 'all'; accepted: a finite set, so that test levels are unseen")
    if config.has_unseen_levels and config.test_set.overlaps(config.train_set):
        raise InputError(f"--test-levels {config.test_levels} overlap --levels {config.levels}; accepted: disjoint")
    for option, value in UNSPLITTABLE:
        if config.options.get(option) == value:
            raise InputError(f"--option {option}={value} leaves the level set; accepted: a value that keeps to it")
    _check_lengths(config, config, "")
    if config.explorer is not None:
        _check_lengths(config, config.explorer, f"{EXPLORER}_")
        if config.network.memory != "none":
            memory = f"--memory is {config.network.memory} but members of an ensemble have none"
            raise InputError(f"{memory}; accepted: none")
    learners = max(config.members, config.explorer.count if config.explorer else 0)
    if config.seed + learners > 2**31:
        accepted = f"accepted for {learners} learners side by side: 0 to {2**31 - learners}"
        raise InputError(f"--seed is {config.seed}; {accepted}")
    return config


def _check_lengths(config: TrainConfig, part: TrainConfig | ExplorerConfig, prefix: str) -> None:
    """Steps and minibatches of members, or of the explorer, whose flags begin with `prefix`."""
    envs, ppo = config.envs_of(part), part.algorithm
    least = envs * part.rollout_steps
    if part.steps < least:
        raise InputError(f"{flag_of(prefix + 'steps')} is {part.steps}; accepted: {least} (one rollout) or more")
    is_whole = getattr(ppo, "minibatch_order", "columns") == "columns"
    most, what = (envs, "--envs") if is_whole else (least, "the transitions of a rollout")
    if (minibatches := getattr(ppo, "minibatches", 1)) > most:
        flag = flag_of(prefix + "minibatches")
        raise InputError(f"{flag} is {minibatches}; accepted: at most {what} ({most})")
