"""TrainConfig: one tree for flags, JSON and Python."""

import dataclasses
import json
from typing import Any

import pytest

from expgen.algorithms.recipes import RECIPES
from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.runs.config import TrainConfig, default_config, validated, with_values
from expgen.runs.plan import plans_of


@pytest.mark.parametrize("algo", RECIPES)
def test_config_round_trips_through_json(algo: str) -> None:
    changes = {"options": {"texture": 0}, "gamma": 0.9, "features": 8, "levels": "3,5"}
    config = with_values(default_config(algo), changes)
    data = json.loads(json.dumps(config.to_json()))
    assert TrainConfig.from_json(data) == config
    assert TrainConfig.from_json(data).digest() == config.digest()
    assert with_values(config, {"gamma": 0.91}).digest() != config.digest()


def test_removed_field_in_json_is_ignored() -> None:
    data = {**default_config("ppo").to_json(), "keep_at": "25000000"}
    assert TrainConfig.from_json(data) == default_config("ppo")


def test_missing_fields_in_json_get_defaults_of_the_algorithm() -> None:
    assert TrainConfig.from_json({"algo": "ppo-gru"}) == default_config("ppo-gru")


def test_later_settings_change_the_digest_only_if_set() -> None:
    config = default_config("expgen")
    old = config.to_json()
    for part in (old, old["explorer"]):
        del part["average"]
    assert TrainConfig.from_json(old) == config  # written by an earlier version
    variants = [with_values(config, changes) for changes in ({}, {"average": 0.9}, {"explorer_average": 0.9})]
    assert len({variant.digest() for variant in variants}) == 3
    assert [TrainConfig.from_json(json.loads(json.dumps(one.to_json()))) for one in variants] == variants


def test_level_replay_is_in_config_json_and_digest_only_if_on() -> None:
    config = default_config("idaac")
    assert not {"level_replay", "replay"} & config.to_json().keys()
    on = with_values(config, {"level_replay": True})
    hotter = with_values(on, {"rank_temperature": 0.3})
    assert on.to_json()["replay"] == {"rank_temperature": 0.1, "staleness_coef": 0.1, "replay_threshold": 1.0}
    assert len({each.digest() for each in (config, on, hotter)}) == 3
    for each in (config, on, hotter):
        assert TrainConfig.from_json(json.loads(json.dumps(each.to_json()))) == each
    assert default_config("plr").replay is None  # its settings are the algorithm's


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "--algo is 'None'; accepted: ppo"),
        ({"algo": "ppo", "stepz": 1}, "config has a field 'stepz'; accepted: algo, env"),
        ({"algo": "ppo", "steps": "many"}, "--steps is 'many'; accepted: a value of type int"),
        ({"algo": "ppo", "steps": True}, "--steps is True; accepted: a value of type int"),
        ({"algo": "ppo", "levels": 200}, "--levels is 200; accepted: a value of type str"),
        ({"algo": "ppo", "algorithm": {"gama": 1}}, "algorithm has a field 'gama'; accepted: gamma"),
        ({"algo": "ppo", "explorer": {"steps": 1}}, "config has settings of explorer, which --algo does not have"),
        ({"algo": "plr", "replay": {"staleness_coef": 0}}, "config has settings of replay, which --algo does not have"),
        ({"algo": "ppo", "network": [256]}, "network is .256.; accepted: an object with encoder"),
    ],
)
def test_invalid_json_is_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainConfig.from_json(data)


def test_with_values_sets_nested_settings() -> None:
    config = with_values(default_config("ppo"), {"steps": 7, "gamma": 0.5, "memory": "gru", "normalize_reward": False})
    assert (config.steps, config.algorithm.gamma, config.network.memory) == (7, 0.5, "gru")
    assert not config.reward.normalize_reward
    with pytest.raises(InputError, match="setting 'gama' is unknown to --algo ppo"):
        with_values(config, {"gama": 0.5})


def test_setting_names_are_unique() -> None:
    for algo in RECIPES:
        config = default_config(algo)
        parts = [config, config.network, config.algorithm, config.reward]
        names = [field.name for part in parts for field in dataclasses.fields(part)]
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("levels", "text"),
    [(50, "50"), (range(10, 60), "10:50"), ([3, 7], "3,7"), (LevelSet(range(5)), "0:5"), ("9:3", "9:3")],
)
def test_levels_from_python_become_text(levels: Any, text: str) -> None:
    config = validated(with_values(default_config("ppo"), {"levels": levels, "test_levels": "100000:5"}))
    assert config.levels == text and config.train_set == LevelSet.parse(levels)
    assert TrainConfig.from_json(config.to_json()) == config


def test_test_levels_are_all_but_the_training_levels() -> None:
    config = default_config("ppo")
    assert 199 in config.train_set and 199 not in config.test_set and 200 in config.test_set
    assert not config.test_set.overlaps(config.train_set)


def test_training_steps_are_rounded_down_to_whole_rollouts() -> None:
    config = with_values(default_config("ppo"), {"envs": 4, "rollout_steps": 8, "steps": 95})
    assert plans_of(config)[0].steps == 2 * config.envs * config.rollout_steps
    assert config.game == "minimaze" and dataclasses.replace(config, env="procgen:maze").game == "maze"
