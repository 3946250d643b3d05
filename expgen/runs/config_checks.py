"""What cannot be trained, said in one line before anything is."""

from expgen.algorithms.recipes import recipe_of
from expgen.errors import InputError
from expgen.runs.config import EXPLORER, ExplorerConfig, TrainConfig
from expgen.settings import check_config, flag_of

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
