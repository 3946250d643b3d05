"""TrainConfig: one tree for flags, JSON and Python, checked at the door."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from expgen.algorithms.algorithm import RECIPES
from expgen.envs.levels import LevelSet
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.experiments.config import TrainConfig, default_config, with_values
from expgen.experiments.run import make_config, open_run
from expgen.experiments.run_folder import RunFolder


@pytest.mark.parametrize("algo", RECIPES)
def test_json_gives_the_config_back(algo: str) -> None:
    changes = {"options": {"texture": 0}, "gamma": 0.9, "features": 8, "levels": "3,5"}
    config = with_values(default_config(algo), changes)
    data = json.loads(json.dumps(config.to_json()))
    assert TrainConfig.from_json(data) == config
    assert TrainConfig.from_json(data).digest() == config.digest()
    assert with_values(config, {"gamma": 0.91}).digest() != config.digest()


def test_fields_that_json_lacks_have_the_defaults_of_the_algorithm() -> None:
    assert TrainConfig.from_json({"algo": "ppo-gru"}) == default_config("ppo-gru")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "--algo is 'None'; accepted: ppo"),
        ({"algo": "ppo", "stepz": 1}, "config has a field 'stepz'; accepted: algo, env"),
        ({"algo": "ppo", "steps": "many"}, "--steps is 'many'; accepted: a value of type int"),
        ({"algo": "ppo", "steps": True}, "--steps is True; accepted: a value of type int"),
        ({"algo": "ppo", "levels": 200}, "--levels is 200; accepted: a value of type str"),
        ({"algo": "ppo", "algorithm": {"gama": 1}}, "algorithm has a field 'gama'; accepted: gamma"),
        ({"algo": "ppo", "network": [256]}, "network is .256.; accepted: an object with encoder"),
    ],
)
def test_json_that_does_not_fit_is_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainConfig.from_json(data)


def test_settings_find_their_place_in_the_tree() -> None:
    config = with_values(default_config("ppo"), {"steps": 7, "gamma": 0.5, "memory": "gru", "normalize_reward": False})
    assert (config.steps, config.algorithm.gamma, config.network.memory) == (7, 0.5, "gru")
    assert not config.reward.normalize_reward
    with pytest.raises(InputError, match="setting 'gama' is unknown to --algo ppo"):
        with_values(config, {"gama": 0.5})


def test_names_are_unique_across_the_tree() -> None:
    for algo in RECIPES:
        config = default_config(algo)
        parts = [config, config.network, config.algorithm, config.reward]
        names = [field.name for part in parts for field in dataclasses.fields(part)]
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("levels", "text"),
    [(50, "50"), (range(10, 60), "10:50"), ([3, 7], "3,7"), (LevelSet(range(5)), "0:5"), ("9:3", "9:3")],
)
def test_levels_from_python_become_the_text_that_json_keeps(levels: Any, text: str) -> None:
    config = with_values(default_config("ppo"), {"levels": levels, "test_levels": "100000:5"}).checked()
    assert config.levels == text and config.train_set == LevelSet.parse(levels)
    assert TrainConfig.from_json(config.to_json()) == config


def test_test_levels_are_all_but_the_training_levels() -> None:
    config = default_config("ppo")
    assert 199 in config.train_set and 199 not in config.test_set and 200 in config.test_set
    assert not config.test_set.overlaps(config.train_set)


def test_updates_are_whole_rollouts() -> None:
    config = with_values(default_config("ppo"), {"envs": 4, "rollout_steps": 8, "steps": 95})
    assert config.whole_rollouts(config) == 2 * config.envs * config.rollout_steps
    assert config.game == "minimaze" and dataclasses.replace(config, env="procgen:maze").game == "maze"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"levels": "all"}, "--levels is 'all'; accepted: a finite set"),
        ({"levels": "x"}, "--levels is 'x'; accepted: COUNT, START:COUNT"),
        ({"levels": "0"}, "--levels names 0 levels"),
        ({"test_levels": "199:2"}, "--test-levels 199:2 overlap --levels 200; accepted: disjoint"),
        ({"test_levels": "5,900"}, "--test-levels 5,900 overlap"),
        ({"steps": 32 * 512 - 1}, "--steps is 16383; accepted: 16384 .one rollout. or more"),
        ({"steps": 1e6}, "--steps is 1000000.0; accepted: a value of type int"),
        ({"minibatches": 33, "minibatch_order": "columns"}, "--minibatches is 33; accepted: at most --envs .32."),
        ({"members": 0}, "--members is 0; accepted: 1 or more"),
        ({"seed": -1}, "--seed is -1; accepted: 0 to"),
        ({"seed": 2**31}, "--seed is 2147483648; accepted: 0 to"),
        ({"gamma": 1.5}, "--gamma is 1.5; accepted: 0 to 1"),
        ({"gamma": float("nan")}, "--gamma is nan"),
        ({"entropy_coef": float("nan")}, "--entropy-coef is nan; accepted: a finite number"),
        ({"learning_rate": float("inf")}, "--learning-rate is inf; accepted: a finite number"),
        ({"checkpoint_seconds": -1.0}, "--checkpoint-seconds is -1.0; accepted: 0 or more"),
        ({"minibatch_order": "sorted"}, "--minibatch-order is 'sorted'; accepted: columns, shuffled"),
        ({"encoder": "resnet"}, "--encoder is 'resnet'; accepted: auto, impala, impoola, conv, small"),
        ({"algo": "a2c"}, "--algo is 'a2c'; accepted: ppo"),
    ],
)
def test_what_cannot_be_trained_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        with_values(default_config("ppo"), changes).checked()


def test_shuffled_minibatches_may_outnumber_the_environments() -> None:
    config = with_values(default_config("ppo"), {"minibatches": 64, "minibatch_order": "shuffled"})
    assert config.checked() is config


@pytest.mark.parametrize("option", [{"distribution_mode": "exploration"}, {"use_sequential_levels": True}])
def test_options_that_leave_the_level_set_cannot_be_trained_with(option: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="leaves the level set; accepted: a value that keeps to it"):
        make_config("procgen:coinrun", options=option)
    assert make_config("procgen:coinrun", options={"use_sequential_levels": False}).options


@pytest.mark.parametrize(("members", "quorum"), [(1, 1), (2, 2), (3, 3), (5, 5), (8, 8)])
def test_the_laptops_quorum_of_all_stays_one_of_all(members: int, quorum: int) -> None:
    config = make_config("minimaze", "expgen", "laptop", members=members)
    assert config.consensus is not None and config.consensus.min_agree == quorum
    asked = make_config("minimaze", "expgen", "laptop", members=members, min_agree=1)
    assert asked.consensus is not None and asked.consensus.min_agree == 1


@pytest.mark.parametrize(("before", "asked", "after", "quorum"), [(4, {}, 10, 6), (4, {"min_agree": 4}, 10, 10)])
def test_a_population_that_grows_gets_the_quorum_of_its_size(
    before: int, asked: dict, after: int, quorum: int, tmp_path: Path
) -> None:
    frozen = make_config("procgen:maze", "expgen", members=before, **asked)
    RunFolder(tmp_path).write_config(frozen, EnvSpec("procgen:maze", (64, 64, 3), "uint8", 15))
    _, grown = open_run(run=tmp_path, resume=True, members=after)
    assert grown.consensus is not None and (grown.members, grown.consensus.min_agree) == (after, quorum)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"memory": "gru"}, "--memory is gru but members of an ensemble have none; accepted: none"),
        ({"ensemble_size": 11}, "--ensemble-size is 11; accepted: 0 to 10"),
        ({"leader": 10}, "--leader is 10; accepted: 0 to 9"),
        ({"explorer_gamma": 2.0}, "--explorer-gamma is 2.0; accepted: 0 to 1"),
        ({"gamma": 2.0}, "--gamma is 2.0; accepted: 0 to 1"),
    ],
)
def test_what_an_ensemble_cannot_be_is_said_before_it_trains(settings: dict, line: str) -> None:
    with pytest.raises(InputError, match=line):
        make_config("procgen:maze", "expgen", **settings)
