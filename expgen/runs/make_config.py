"""A run by environment, algorithm, preset and settings: its whole config, checked, and how its agent votes."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from expgen.agents.consensus import ConsensusConfig, changed_consensus
from expgen.agents.quorum import resized_quorum
from expgen.algorithms.recipes import recipe_of
from expgen.errors import InputError
from expgen.runs.config import EXPLORER, ExplorerConfig, TrainConfig, default_config, with_values
from expgen.runs.presets import agent_values, default_preset, game_values, preset_values
from expgen.settings import check_config, flag_of, with_changes


def make_config(env: str = "minimaze", algo: str = "ppo", preset: str | None = None, **settings: Any) -> TrainConfig:
    """The defaults of `algo`, changed by a preset and by what suits `env`, changed by `settings`."""
    config = dataclasses.replace(default_config(algo), env=env)
    preset = preset or default_preset(env)
    usual = {**preset_values(preset, env), **game_values(algo, env, preset)}
    config = with_changes(config, usual)[0]  # an algorithm of the user's own may lack some of these settings
    asked = with_values(config, settings)
    if asked.network.memory != "none" and config.network.memory == "none":  # memory learns from whole sequences
        asked = with_values(config, {"minibatch_order": "columns", **settings})
    return checked(asked)


def make_consensus(
    config: TrainConfig, preset: str | None = None, settings: Mapping[str, Any] | None = None
) -> ConsensusConfig | None:
    """How the agent of a new run votes: as `preset` says, changed by `settings`; None where it has no ensemble."""
    if not plays_together(config.algo):
        return None
    preset = preset or default_preset(config.env)
    of = make_config(config.env, config.algo, preset).members
    usual = changed_consensus(ConsensusConfig(), agent_values(config.env, preset), of)
    return resized_consensus(usual, of, config, settings or {})


def plays_together(algo: str) -> bool:
    """Whether the policies of a run make one agent: an ensemble with its explorers, or explorers alone."""
    recipe = recipe_of(algo)
    return recipe.explorer is not None or recipe.takes_turns


def resized_consensus(
    consensus: ConsensusConfig, of: int, config: TrainConfig, settings: Mapping[str, Any]
) -> ConsensusConfig:
    """`consensus` of `of` members for as many as `config` has, changed by `settings`.

    Unless `settings` name a quorum, it is what `agents.quorum` makes of the old one.
    """
    changed = changed_consensus(consensus, settings, config.members)
    if settings.get("min_agree") or recipe_of(config.algo).takes_turns:
        return changed
    known = 0 if "min_agree" in settings else consensus.min_agree
    return dataclasses.replace(changed, min_agree=resized_quorum(known, of, config.members, config.env))


def split_settings(algo: str, settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings that train, and those of how an ensemble votes; without an ensemble all are taken for the former."""
    names = {field.name for field in dataclasses.fields(ConsensusConfig)} if plays_together(algo) else set()
    votes = {name: value for name, value in settings.items() if name in names}
    return {name: value for name, value in settings.items() if name not in votes}, votes


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
