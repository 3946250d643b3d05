"""Presets: the settings that each `--preset` changes from the defaults."""

from itertools import product
from typing import Any

from expgen.agents.temperature import AS_TRAINED
from expgen.algorithms.recipes import recipe_of
from expgen.errors import check_choice
from expgen.reward.source import GameReward
from expgen.runs import best

# The defaults of the configs are the paper's, so `paper` changes nothing. `best` is ours: `paper` on ProcGen, `laptop`
# elsewhere, plus the changes in best.py.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "best": {},
    "laptop": {  # small observations; 93 % of minimaze's training levels solved after 1.5M steps
        "steps": 3_000_000, "envs": 64, "rollout_steps": 128,
        "gamma": 0.99, "learning_rate": 1e-3, "eval_every": 500_000, "eval_episodes": 400,
    },
    "smoke": {
        "steps": 4096, "envs": 16, "rollout_steps": 64, "minibatches": 4, "epochs": 1,
        "eval_every": 4096, "eval_episodes": 8,
    },
}  # fmt: skip
# The large network on 64 × 64 pixels is slower: most of an hour on two cores, for a first impression.
PROCGEN_LAPTOP = {"steps": 500_000, "rollout_steps": 256, "eval_every": 250_000, "eval_episodes": 100}
# The explorer's discount by game, from the original code (the paper's text says 0.999, which does not explore).
EXPLORER_GAMMA = {
    "maze": 0.9, "heist": 0.5, "jumper": 0.99, "miner": 0.9, "bigfish": 0.99, "starpilot": 0.9, "fruitbot": 0.99,
    "bossfight": 0.99, "plunder": 0.9, "caveflyer": 0.9, "coinrun": 0.99, "chaser": 0.5, "climber": 0.99,
    "dodgeball": 0.9, "leaper": 0.99, "ninja": 0.9,
}  # fmt: skip
# Settings by game of DAAC's authors, where not their default. IDAAC's classifier is linear without `order_hidden`.
DAAC_GAMES: dict[str, dict[str, Any]] = {
    "plunder": {"value_epochs": 1, "value_every": 8, "advantage_coef": 0.3},
    "chaser": {"value_epochs": 1, "advantage_coef": 0.15},
    "miner": {"value_every": 32},
    "climber": {"advantage_coef": 0.05},
    "bigfish": {"value_every": 32, "advantage_coef": 0.05},
    "dodgeball": {"value_every": 32},
}
IDAAC_ORDER: dict[str, dict[str, Any]] = {
    "plunder": {"order_coef": 0.1},
    "miner": {"order_coef": 0.1, "order_hidden": 64},
    "climber": {"order_hidden": 64},
    "bigfish": {"order_coef": 0.01, "order_hidden": 4},
    "dodgeball": {"order_hidden": 64},
}
EVERY, PROCGEN = "*", "procgen:*"  # every preset or environment; ProcGen's games
ENSEMBLE = "any ensemble"  # every algorithm with members and an explorer
# Settings of the members' preset that also apply to their explorer.
SHARED_WITH_EXPLORER = ("steps", "rollout_steps", "learning_rate", "minibatches", "epochs")
# Explorer of `laptop` on minimaze: short rollouts for many updates, convolutions since exploration is local, and r_I at
# its scale in ProcGen's Maze, which suits the value's clip range. It reaches 92 % of the oracle's cells on training
# levels and 84 % on unseen ones after 1.5M steps.
LAPTOP_EXPLORER = {
    "rollout_steps": 32, "minibatches": 4, "learning_rate": 5e-4, "encoder": "conv", "features": 128,
    "reward_scale": 0.15,
}  # fmt: skip
# DAAC and IDAAC of `laptop` on minimaze: as many epochs of each network as PPO has. The authors' one epoch of the
# policy and nine of the values learn slowly there.
LAPTOP_DAAC = {"epochs": 3, "value_epochs": 3}
LAPTOP_ENSEMBLE = {"members": 5, "steps": 1_500_000, "explorer_steps": 1_500_000}
# Chosen by scores on unseen levels with seed 0. It should be chosen on left-out training levels instead.
LAPTOP_AGENT = {"min_agree": 5}

NOVELTY: dict[str, dict[str, Any]] = {
    "minimaze": {"pool": 1},  # a move is one pixel there: averaging would blur it
    **{f"procgen:{game}": {"gamma": gamma} for game, gamma in EXPLORER_GAMMA.items()},
}
# preset → algorithm → environment → settings, merged by `game_values`. An algorithm's settings also apply to ensembles
# whose members it trains, those of `--algo NAME` only to that value of the flag.
SETTINGS: dict[str, dict[str, dict[str, dict[str, Any]]]] = {
    EVERY: {
        "maxent": NOVELTY,
        "openend": {EVERY: best.EXPLORER, **NOVELTY},
        "mixed": {"minimaze": NOVELTY["minimaze"]},
        "daac": {f"procgen:{game}": values for game, values in DAAC_GAMES.items()},
        "idaac": {f"procgen:{game}": {**values, **IDAAC_ORDER.get(game, {})} for game, values in DAAC_GAMES.items()},
    },
    "paper": {  # steps of the original code, and of the ablation of Eq. 9
        "maxent": {PROCGEN: {"steps": 100_000_000}},
        "mixed": {PROCGEN: {"steps": 50_000_000}},
        "openend": best.STEPS,
    },
    "laptop": {
        ENSEMBLE: {EVERY: {"explorer_envs": 0}, "minimaze": LAPTOP_ENSEMBLE},  # 0: as many as a member has
        "maxent": {"minimaze": LAPTOP_EXPLORER},
        "openend": {"minimaze": LAPTOP_EXPLORER},
        "daac": {"minimaze": LAPTOP_DAAC},
        "idaac": {"minimaze": LAPTOP_DAAC},
    },
    "smoke": {ENSEMBLE: {EVERY: {"explorer_envs": 0, "members": 2}}},  # the fewest that can vote
    "best": {
        ENSEMBLE: {EVERY: {"explorer_count": best.NUM_EXPLORERS}},
        "maxent": {EVERY: best.EXPLORER, **best.STEPS, **best.MINIMAZE_STEPS},
        "openend": {**best.STEPS, **best.MINIMAZE_STEPS},
        "mixed": {"procgen:jumper": best.MIXED},
        f"--algo {best.JUMPER}": {"procgen:jumper": best.JUMPER_IDAAC},
        "--algo idaac": best.IDAAC_SETTINGS,
    },
}


def game_values(algo: str, env: str, preset: str) -> dict[str, Any]:
    """Return the settings of `algo` that depend on the environment.

    They are merged in this order, later ones win: those of every preset, then of this one; of any ensemble, then of the
    algorithm; of every environment, then of this one. `best` on minimaze builds on `laptop`.
    """
    recipe = recipe_of(algo)
    values = explorer_values(recipe.explorer, env, preset) if recipe.explorer else {}
    if recipe.build_reward is not GameReward:
        values["gamma"] = recipe.config.gamma  # a preset's γ suits the game's reward
    presets = (EVERY, "laptop", preset) if is_small_minimaze(env, preset) else (EVERY, preset)
    algos = (*((ENSEMBLE,) if recipe.explorer else ()), recipe.member or algo, f"--algo {algo}")
    envs = (EVERY, PROCGEN, env) if env.startswith("procgen:") else (EVERY, env)
    for of_preset, of_algo, of_env in product(presets, algos, envs):
        values |= SETTINGS[of_preset].get(of_algo, {}).get(of_env, {})
    if preset == "best" and recipe.splits_envs:
        values |= {"mirror": False, "recolor": False}  # it refuses them
    return values


def explorer_values(algo: str, env: str, preset: str) -> dict[str, Any]:
    """Return the settings, with the prefix `explorer_`, of an ensemble's explorer that `algo` trains."""
    common = {name: value for name, value in preset_values(preset, env).items() if name in SHARED_WITH_EXPLORER}
    return {f"explorer_{name}": value for name, value in {**common, **game_values(algo, env, preset)}.items()}


def is_small_minimaze(env: str, preset: str) -> bool:
    """Whether the LAPTOP_… settings for minimaze apply."""
    return preset in ("laptop", "best") and env == "minimaze"


def agent_values(env: str, preset: str) -> dict[str, Any]:
    """Return the voting settings of a preset that differ from ConsensusConfig's defaults."""
    return {
        **(LAPTOP_AGENT if is_small_minimaze(env, preset) else {}),
        **(best.AGENTS.get(env, best.AGENT) if preset == "best" else {}),
    }


def playing_values(env: str | None, algo: str, preset: str | None) -> dict[str, Any]:
    """Return the weights and the temperature that a preset sets in agent.json."""
    if preset != "best" or env not in best.IDAAC_SETTINGS or algo != "idaac":
        return {}
    return {"weights": "average", "temperature": best.TEMPERATURES.get(env, AS_TRAINED)}


def preset_values(preset: str, env: str) -> dict[str, Any]:
    """Return the settings of `preset` that do not depend on the algorithm."""
    values = PRESETS[check_choice("--preset", preset, PRESETS)]
    is_procgen = env.startswith("procgen:")
    if preset == "best" and not is_procgen:
        values = PRESETS["laptop"]
    if preset == "best" and env in best.AUGMENTATION:
        return {**values, **best.AUGMENTATION[env]}
    return PROCGEN_LAPTOP if preset == "laptop" and is_procgen else values


def default_algo(preset: str | None, env: str | None = None) -> str:
    """Return the default algorithm; for `best` it is the one with the highest score for its steps on `env`."""
    return best.ALGOS.get(env or "", best.DEFAULT_ALGO) if preset == "best" else "ppo"


def default_preset(env: str) -> str:
    """Return the default preset: `paper` on ProcGen, else `laptop`."""
    return "paper" if env.startswith("procgen:") else "laptop"
