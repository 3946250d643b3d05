"""TrainConfig: everything that decides a run, frozen, as flags, as JSON and as Python alike."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from expgen.algorithms.algorithm import Recipe, recipe_of
from expgen.algorithms.ppo import PPOConfig
from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig
from expgen.reward.knn import KnnConfig
from expgen.reward.source import GameRewardConfig
from expgen.settings import check_config, flag_of, is_of_type, setting


@dataclass(frozen=True)
class TrainConfig:
    """One run: one or more learners of the same kind that differ in their seed."""

    algo: str = setting("ppo", "what learns")
    env: str = setting("minimaze", "minimaze, procgen:GAME, gymnasium:ID or envpool:ID")
    levels: str = setting("200", "training levels: COUNT, START:COUNT or A,B,C")
    test_levels: str = setting("all", "levels to score on, never trained on: START:COUNT, A,B,C, or all (the others)")
    seed: int = setting(0, "seed of the first learner; the next ones count on from it", low=0, high=2**31 - 1)
    members: int = setting(1, "learners trained side by side", low=1)
    steps: int = setting(25_000_000, "environment steps of each learner", low=1)
    envs: int = setting(32, "environments of each learner", low=1)
    rollout_steps: int = setting(512, "steps of every environment between two updates", low=1)
    eval_every: int = setting(2_500_000, "score on train and test levels every so many steps; 0 for never", low=0)
    eval_episodes: int = setting(200, "episodes of each such score", low=1)
    checkpoint_seconds: float = setting(60.0, "seconds between checkpoints", low=0)
    options: Mapping[str, Any] = field(default_factory=dict, metadata={"help": "options of the environment"})
    network: NetworkConfig = NetworkConfig()
    algorithm: PPOConfig = PPOConfig()
    reward: GameRewardConfig | KnnConfig = GameRewardConfig()

    @property
    def num_updates(self) -> int:
        """Whole rollouts that fit into `steps`."""
        return self.steps // (self.envs * self.rollout_steps)

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
        return test.without(self.train_set) if test.seeds is None else test

    def checked(self) -> "TrainConfig":
        """This config, or an InputError that says what is wrong with it."""
        recipe_of(self.algo)
        check_config(self)
        if self.train_set.seeds is None:
            raise InputError("--levels is 'all'; accepted: a finite set, so that test levels are unseen")
        if self.test_set.overlaps(self.train_set):
            raise InputError(f"--test-levels {self.test_levels} overlap --levels {self.levels}; accepted: disjoint")
        if self.num_updates < 1:
            least = self.envs * self.rollout_steps
            raise InputError(f"--steps is {self.steps}; accepted: {least} (one rollout) or more")
        if self.envs < self.algorithm.minibatches and self.algorithm.minibatch_order == "columns":
            raise InputError(f"--minibatches is {self.algorithm.minibatches}; accepted: at most --envs ({self.envs})")
        return self

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "TrainConfig":
        """The inverse of `to_json`; an InputError names what does not fit."""
        values = dict(data)
        base = default_config(str(values.get("algo")))
        for name in ("network", "algorithm", "reward"):
            values[name] = _filled(getattr(base, name), values.get(name, {}), name)
        return _filled(base, values, "config")

    def digest(self) -> str:
        """Twelve hex digits that name this config in results/."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:12]


def default_config(algo: str) -> TrainConfig:
    """The defaults of `algo`."""
    recipe: Recipe = recipe_of(algo)
    return TrainConfig(algo=algo, network=recipe.network, algorithm=recipe.config, reward=recipe.reward)


def with_values(config: TrainConfig, values: Mapping[str, Any]) -> TrainConfig:
    """`config` with some settings replaced, wherever in the tree they stand: names are unique across it."""
    left = {name: _level_text(name, value) for name, value in values.items()}
    changes: dict[str, Any] = {name: left.pop(name) for name in list(left) if name in _names(config)}
    for part in ("network", "algorithm", "reward"):
        node = changes.get(part, getattr(config, part))
        inside = {name: left.pop(name) for name in list(left) if name in _names(node)}
        if inside:
            changes[part] = dataclasses.replace(node, **inside)
    if left:
        raise InputError(f"setting {next(iter(left))!r} is unknown to --algo {config.algo}; see expgen train --help")
    return dataclasses.replace(config, **changes)


def _level_text(name: str, value: Any) -> Any:
    """Levels as the text that config.json keeps, also where Python gave a count, a range or a LevelSet."""
    if name not in ("levels", "test_levels") or isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) else str(LevelSet.parse(value, flag_of(name)))


def _names(config: Any) -> list[str]:
    return [entry.name for entry in dataclasses.fields(config)]


def _filled(base: Any, values: Any, where: str) -> Any:
    """`base` with `values`, of the types its fields ask for."""
    hints = get_type_hints(type(base))
    names = _names(base)
    if not isinstance(values, Mapping):
        raise InputError(f"{where} is {values!r}; accepted: an object with {', '.join(names)}")
    for name, value in values.items():
        if name not in names:
            raise InputError(f"{where} has a field {name!r}; accepted: {', '.join(names)}")
        if not is_of_type(value, hints[name]):
            raise InputError(f"{flag_of(name)} is {value!r}; accepted: a value of type {hints[name].__name__}")
    return dataclasses.replace(base, **values)
