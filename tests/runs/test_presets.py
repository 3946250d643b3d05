"""Presets: the settings that each changes, by environment and algorithm."""

import pytest

from expgen.algorithms.recipes import RECIPES
from expgen.errors import InputError
from expgen.runs.config import default_config, with_values
from expgen.runs.make_config import make_config
from expgen.runs.presets import PRESETS, agent_values, default_algo, default_preset, game_values, preset_values
from expgen.settings import flatten


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("algo", RECIPES)
@pytest.mark.parametrize("env", ["minimaze", "procgen:maze", "gymnasium:CartPole-v1"])
def test_every_preset_is_valid_for_every_algorithm(preset: str, algo: str, env: str) -> None:
    config = make_config(env, algo, preset)
    assert config.env == env and config.algo == algo
    asked = preset_values(preset, env) | game_values(algo, env, preset)
    for name, value in asked.items():
        assert with_values(config, {name: value}) == config  # it took effect


def test_paper_preset_is_the_defaults() -> None:
    config = make_config("procgen:maze", "ppo", "paper")
    assert config == with_values(default_config("ppo"), {"env": "procgen:maze"})


def test_default_preset_is_paper_on_procgen_and_laptop_elsewhere() -> None:
    assert default_preset("procgen:maze") == "paper"
    assert {default_preset(env) for env in ("minimaze", "gymnasium:CartPole-v1", "envpool:Pong-v5")} == {"laptop"}
    assert make_config("procgen:maze").steps == 25_000_000 and make_config().steps == PRESETS["laptop"]["steps"]


@pytest.mark.parametrize(
    ("game", "daac", "order"),  # E_V, N_π, α_a; α_i, hidden units of the classifier
    [
        ("plunder", (1, 8, 0.3), (0.1, 0)),
        ("chaser", (1, 1, 0.15), (0.001, 0)),
        ("miner", (9, 32, 0.25), (0.1, 64)),
        ("climber", (9, 1, 0.05), (0.001, 64)),
        ("bigfish", (9, 32, 0.05), (0.01, 4)),
        ("dodgeball", (9, 32, 0.25), (0.001, 64)),
        *((game, (9, 1, 0.25), (0.001, 0)) for game in ("maze", "heist", "jumper", "starpilot", "coinrun", "ninja")),
    ],
)
def test_daac_and_idaac_use_the_authors_settings_by_game(game: str, daac: tuple, order: tuple) -> None:
    for algo in ("daac", "idaac", "expgen-idaac"):
        c = make_config(f"procgen:{game}", algo).algorithm
        assert (c.value_epochs, c.value_every, c.advantage_coef) == daac
        if algo != "daac":
            assert (c.order_coef, c.order_hidden) == order


def test_daac_idaac_and_ppg_use_more_envs_and_shorter_rollouts() -> None:
    for algo in ("daac", "idaac", "ppg"):
        config = make_config("procgen:maze", algo)
        assert (config.envs, config.rollout_steps, config.steps) == (64, 256, 25_000_000)
    assert make_config(algo="daac", preset="laptop").algorithm.gamma == PRESETS["laptop"]["gamma"]


def test_game_values_merge_presets_then_algorithms_then_environments() -> None:
    ensemble = game_values("expgen-idaac+mixed", "procgen:jumper", "best")
    assert ensemble["explorer_count"] == 1  # of this algorithm, instead of 3 of any ensemble
    assert (ensemble["gamma"], ensemble["explorer_gamma"]) == (0.99, 0.99)
    assert game_values("idaac", "procgen:bigfish", "best") == {
        "value_every": 32, "advantage_coef": 0.05, "order_coef": 0.01, "order_hidden": 4,
        "average": 0.98, "envs": 128, "rollout_steps": 128,
    }  # fmt: skip
    members = game_values("expgen-idaac", "procgen:bigfish", "best")
    assert "envs" not in members and members["order_hidden"] == 4  # those of `--algo idaac` are not the members'
    assert game_values("maxent", "minimaze", "best") == {
        "gamma": 0.9, "pool": 1, "rollout_steps": 32, "minibatches": 4, "learning_rate": 5e-4, "encoder": "conv",
        "features": 128, "reward_scale": 0.15, "end_value": 1.0, "average": 0.98, "steps": 1_500_000,
    }  # fmt: skip


def test_settings_override_the_preset() -> None:
    assert make_config(preset="smoke", envs=8).envs == 8


def test_policies_with_memory_use_column_minibatches() -> None:
    assert make_config(algo="ppo", preset="laptop").algorithm.minibatch_order == "shuffled"
    assert make_config(algo="ppo-gru", preset="laptop").algorithm.minibatch_order == "columns"
    assert make_config(algo="ppo", preset="laptop", memory="gru").algorithm.minibatch_order == "columns"


def test_unknown_preset_is_refused() -> None:
    with pytest.raises(InputError, match="--preset is 'huge'; accepted: paper, best, laptop, smoke"):
        make_config(preset="huge")


def test_preset_best_changes_explorer_vote_and_mirroring() -> None:
    for env, scale in (("procgen:maze", "paper"), ("procgen:heist", "paper"), ("minimaze", "laptop")):
        best, other = flatten(make_config(env, "expgen", "best")), flatten(make_config(env, "expgen", scale))
        changed = {name: value for name, value in best.items() if value != other[name]}
        most = 13_107_200 if env == "procgen:heist" else 11_600_000
        steps = {"explorer_steps": most} if scale == "paper" else {}
        explorer = {"explorer_average": 0.98, "explorer_end_value": 1.0, "explorer_count": 3, **steps}
        assert changed == {**explorer, **({} if env == "procgen:heist" else {"mirror": True})}
        votes = {**agent_values(env, scale), "vote": "majority", "once": True}
        assert agent_values(env, "best") == votes
        alone = flatten(make_config(env, "maxent", "best"))
        assert all(
            alone[name.removeprefix("explorer_")] == value
            for name, value in explorer.items()
            if name != "explorer_count"
        )
    assert make_config("procgen:heist", "ppo", "best") == make_config("procgen:heist", "ppo", "paper")


def test_preset_best_on_jumper_trains_idaac_members_and_mixed_explorers() -> None:
    assert default_algo("best", "procgen:jumper") == "expgen-idaac+mixed"
    assert {default_algo("best", env) for env in ("procgen:maze", "procgen:heist", "minimaze", None)} == {"openend"}
    assert {default_algo(preset, "procgen:jumper") for preset in ("paper", "laptop", None)} == {"ppo"}
    config = make_config("procgen:jumper", default_algo("best", "procgen:jumper"), "best")
    explorer = config.explorer
    assert (config.members, config.steps, config.average) == (1, 12_000_000, 0.98)
    assert config.mirror and config.recolor
    assert (config.algorithm.gamma, config.algorithm.value_epochs) == (0.99, 3)
    assert (explorer.count, explorer.steps, explorer.average) == (1, 6_000_000, 0.98)
    assert (explorer.algorithm.gamma, explorer.reward.beta, explorer.reward.reward_scale) == (0.99, 0.5, 0.1)
    assert agent_values("procgen:jumper", "best") == {"vote": "turns", "patience": 100}
    alone = make_config("procgen:jumper", "mixed", "best")
    assert alone.mirror and not make_config("procgen:jumper", "mixed").mirror
    assert (alone.algorithm, alone.reward, alone.steps) == (explorer.algorithm, explorer.reward, explorer.steps)
    assert make_config("procgen:heist", "mixed", "best") == make_config("procgen:heist", "mixed", steps=25_000_000)
