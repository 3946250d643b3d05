"""Exhibits that are settings: Table 3 (normalisation) and Table 6 (PPO), ours beside the paper's."""

from collections.abc import Sequence

from expgen.evaluation.normalize import CONSTANTS
from expgen.paper import numbers
from expgen.report.section import Section
from expgen.report.tables import Table, number_cell
from expgen.runs.make_config import make_config


def settings_sections(names: Sequence[str]) -> list[Section]:
    """Those among `names`."""
    return [make() for name, make in (("table-3", constants_section), ("table-6", ppo_section)) if name in names]


def constants_section() -> Section:
    """Table 3."""
    table = Table("table-3", "R_min and R_max in use.", ("game", "easy min", "easy max", "hard min", "hard max"))
    for game in numbers.games():
        bounds = (*CONSTANTS["easy"][game], *CONSTANTS["hard"][game])
        table.add(game, *(number_cell(value, 1) for value in bounds))
    return Section("table-3", "`--constants rliable` takes the hard minima for Jumper and Leaper.", (table,))


def ppo_section() -> Section:
    """Table 6, from the config that `expgen train maze` runs."""
    config = make_config("procgen:maze", "ppo", "paper")
    explorer = make_config("procgen:maze", "maxent", "paper")
    ppo = config.algorithm
    ours = {
        "gamma": f"{ppo.gamma} (explorer on Maze: {explorer.algorithm.gamma})",
        "gae_lambda": ppo.gae_lambda,
        "timesteps_per_rollout": config.rollout_steps,
        "epochs_per_rollout": ppo.epochs,
        "minibatches_per_epoch": ppo.minibatches,
        "entropy_bonus": ppo.entropy_coef,
        "ppo_clip_range": ppo.clip,
        "learning_rate": ppo.learning_rate,
        "environments_per_worker": config.envs,
        "total_timesteps": f"{config.steps:,} (explorer: {explorer.steps:,})",
        "gru": f"{config.network.memory} (explorer: {explorer.network.memory})",
        "training_levels": config.levels,
        "k_nn": explorer.reward.neighbor_rank,  # type: ignore[union-attr]
    }
    table = Table("table-6", "PPO's settings, ours on ProcGen's Maze and the paper's.", ("setting", "ours", "paper"))
    for row in numbers.rows("ppo_hyperparameters"):
        if row["parameter"] in ours:
            table.add(row["parameter"].replace("_", " "), str(ours[row["parameter"]]), row["paper_value"])
    return Section("table-6", "Where paper and original code differ: docs/how-expgen-works.md.", (table,))
