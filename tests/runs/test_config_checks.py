"""Invalid configs are refused in one line that names the flag."""

from typing import Any

import pytest

from expgen.errors import InputError
from expgen.rollout.level_replay import ReplayConfig
from expgen.runs.config import default_config, validated, with_values
from expgen.runs.make_config import RunRequest, make_config, open_run


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"levels": "all"}, "--levels is 'all'; accepted: a finite set"),
        ({"levels": "x"}, "--levels is 'x'; accepted: COUNT, START:COUNT"),
        ({"levels": "0"}, "--levels is '0', which names 0 levels"),
        ({"test_levels": "199:2"}, "--test-levels 199:2 overlap --levels 200; accepted: disjoint"),
        ({"test_levels": "5,900"}, "--test-levels 5,900 overlap"),
        ({"steps": 32 * 512 - 1}, "--steps is 16383; accepted: 16384 .one rollout. or more"),
        ({"steps": 1e6}, "--steps is 1000000.0; accepted: a value of type int"),
        ({"minibatches": 33, "minibatch_order": "columns"}, "--minibatches is 33; accepted: at most --envs .32."),
        ({"minibatches": 16385, "minibatch_order": "shuffled"}, "--minibatches is 16385; accepted: at most .* .16384."),
        ({"members": 0}, "--members is 0; accepted: 1 to 10000"),
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
def test_invalid_config_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        validated(with_values(default_config("ppo"), changes))


@pytest.mark.parametrize("name", ["mirror", "recolor"])
def test_leep_refuses_augmented_games(name: str) -> None:
    with pytest.raises(InputError, match=f"--{name} is True but leep splits the environments .* accepted: False"):
        validated(with_values(default_config("leep"), {name: True}))


@pytest.mark.parametrize("algo", ["plr", "leep", "expgen-plr"])
def test_level_replay_is_refused_if_the_algorithm_chooses_levels(algo: str) -> None:
    with pytest.raises(InputError, match=f"--level-replay is True but {algo} chooses its levels itself; accepted: Fal"):
        make_config(algo=algo, level_replay=True)


def test_settings_of_level_replay_are_refused_without_it() -> None:
    with pytest.raises(InputError, match=r"--staleness-coef is 0.2 without --level-replay; accepted: with --level-rep"):
        make_config(algo="idaac", staleness_coef=0.2)
    assert make_config(algo="idaac", staleness_coef=0.1).replay == ReplayConfig()
    assert make_config(algo="plr", staleness_coef=0.2).algorithm.staleness_coef == 0.2


def test_shuffled_minibatches_may_outnumber_the_environments() -> None:
    for minibatches in (64, 32 * 512):
        config = with_values(default_config("ppo"), {"minibatches": minibatches, "minibatch_order": "shuffled"})
        assert validated(config) is config


@pytest.mark.parametrize("option", [{"distribution_mode": "exploration"}, {"use_sequential_levels": True}])
def test_options_that_ignore_the_level_set_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="ignores the level set; accepted: a value that uses it"):
        make_config("procgen:coinrun", options=option)
    assert make_config("procgen:coinrun", options={"use_sequential_levels": False}).options


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"memory": "gru"}, "--memory is gru; accepted for members of an ensemble: none"),
        ({"ensemble_size": 11}, "--ensemble-size is 11; accepted: 0 to 10"),
        ({"stretch": "table", "alpha": 0.3}, "--stretch is table, for α = 0.5, but α is 0.3; accepted: geometric"),
        ({"leader": 10}, "--leader is 10; accepted: 0 to 9"),
        ({"explorer_gamma": 2.0}, "--explorer-gamma is 2.0; accepted: 0 to 1"),
        ({"gamma": 2.0}, "--gamma is 2.0; accepted: 0 to 1"),
    ],
)
def test_invalid_ensemble_settings_are_refused(settings: dict, line: str) -> None:
    with pytest.raises(InputError, match=line):
        open_run(RunRequest("procgen:maze", "expgen", settings=settings))


@pytest.mark.parametrize("settings", [{"alpha": 0.3}, {"stretch": "table"}, {"stretch": "geometric", "alpha": 0.3}])
def test_valid_stretch_settings_are_accepted(settings: dict) -> None:
    assert open_run(RunRequest("procgen:maze", "expgen", settings=settings)).consensus is not None
