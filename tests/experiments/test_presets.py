"""Presets: what each changes, on which environment."""

import pytest

from expgen.algorithms.algorithm import RECIPES
from expgen.errors import InputError
from expgen.experiments.config import default_config, with_values
from expgen.experiments.presets import PRESETS, default_preset, game_values, preset_values
from expgen.experiments.run import make_config


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("algo", RECIPES)
@pytest.mark.parametrize("env", ["minimaze", "procgen:maze", "gymnasium:CartPole-v1"])
def test_every_preset_makes_a_valid_config_of_every_algorithm(preset: str, algo: str, env: str) -> None:
    config = make_config(env, algo, preset)
    assert config.env == env and config.algo == algo
    asked = preset_values(preset, env) | game_values(algo, env, preset)
    for name, value in asked.items():
        assert with_values(config, {name: value}) == config  # it took effect


def test_paper_is_the_defaults() -> None:
    config = make_config("procgen:maze", "ppo", "paper")
    assert config == with_values(default_config("ppo"), {"env": "procgen:maze"})


def test_default_is_the_paper_on_procgen_and_minutes_elsewhere() -> None:
    assert default_preset("procgen:maze") == "paper"
    assert {default_preset(env) for env in ("minimaze", "gymnasium:CartPole-v1", "envpool:Pong-v5")} == {"laptop"}
    assert make_config("procgen:maze").steps == 25_000_000 and make_config().steps == PRESETS["laptop"]["steps"]


def test_settings_win_over_the_preset() -> None:
    assert make_config(preset="smoke", envs=8).envs == 8


def test_memory_keeps_whole_columns() -> None:
    assert make_config(algo="ppo", preset="laptop").algorithm.minibatch_order == "shuffled"
    assert make_config(algo="ppo-gru", preset="laptop").algorithm.minibatch_order == "columns"
    assert make_config(algo="ppo", preset="laptop", memory="gru").algorithm.minibatch_order == "columns"


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(InputError, match="--preset is 'huge'; accepted: paper, laptop, smoke"):
        make_config(preset="huge")
