"""make_config: a run asked for by environment, algorithm, preset and settings, as the whole config that is meant."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from expgen.agents.consensus import check_stretch
from expgen.agents.quorum import scaled_quorum
from expgen.runs.config import TrainConfig, default_config, with_values
from expgen.runs.config_checks import checked
from expgen.runs.presets import default_preset, game_values, paper_quorum, preset_values


def make_config(env: str = "minimaze", algo: str = "ppo", preset: str | None = None, **settings: Any) -> TrainConfig:
    """The defaults of `algo`, changed by a preset and by what suits `env`, changed by `settings`."""
    config = dataclasses.replace(default_config(algo), env=env)
    preset = preset or default_preset(env)
    config = with_values(config, {**preset_values(preset, env), **game_values(algo, env, preset)})
    if settings.get("memory", "none") != "none":
        config = with_values(config, {"minibatch_order": "columns"})  # memory learns from whole sequences
    config = checked(with_quorum(config, with_values(config, settings), settings))
    if config.consensus is not None:
        check_stretch(settings, config.consensus)
    return config


def with_quorum(before: TrainConfig, after: TrainConfig, settings: Mapping[str, Any]) -> TrainConfig:
    """`after`, which `settings` made of `before`, with the quorum that its number of members asks for.

    That is the paper's, unless `before` had one of its own or `settings` name one.
    """
    if before.consensus is None or after.consensus is None or settings.get("min_agree"):
        return after
    known = before.consensus.min_agree
    if "min_agree" in settings or known in (0, paper_quorum(before.env, before.members)):
        return with_values(after, {"min_agree": paper_quorum(after.env, after.members)})
    return with_values(after, {"min_agree": scaled_quorum(known, before.members, after.members)})
