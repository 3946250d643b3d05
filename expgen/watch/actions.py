"""Names of actions, and the rows in which the inspector shows votes for them."""

import tomllib
from pathlib import Path
from typing import NamedTuple

from expgen.agents.vote import classes_of
from expgen.envs.minimaze import ACTIONS as MINIMAZE_ACTIONS
from expgen.envs.vec_env import EnvSpec

NAMES = tomllib.loads(Path(__file__).with_name("assets").joinpath("actions.toml").read_text("utf-8"))
PROCGEN_ACTIONS = tuple(NAMES["procgen"])
OTHER = "other"


class ActionRows(NamedTuple):
    """Actions with the same effect share a row."""

    actions: tuple[str, ...]  # [A] name of each action
    rows: tuple[str, ...]  # name of each row
    row_of: tuple[int, ...]  # [A] row of each action


def action_names(spec: EnvSpec) -> tuple[str, ...]:
    """Return the names of the actions; `action 0`, `action 1`, … if they are unknown."""
    family, _, game = spec.name.partition(":")
    if family == "minimaze":
        return ("stay", *MINIMAZE_ACTIONS[1:])
    is_procgen = family == "procgen" or (family == "envpool" and classes_of(spec) is not None)
    known = NAMES["gymnasium"].get(game.rpartition("/")[2].partition("-v")[0], ())
    if is_procgen and spec.num_actions == len(PROCGEN_ACTIONS):
        fires = game.lower().startswith(tuple(NAMES["firing"]))
        known = ["fire" if name == "key D" and fires else name for name in PROCGEN_ACTIONS]
    if len(known) == spec.num_actions:
        return tuple(known)
    return tuple(f"action {action}" for action in range(spec.num_actions))


def action_rows(spec: EnvSpec, by_action: bool = False, own_names: tuple[str, ...] = ()) -> ActionRows:
    """Return one row per action class, or per action without classes or if `by_action`, with `own_names` if given."""
    names = own_names or action_names(spec)
    classes = None if by_action else classes_of(spec)
    if classes is None:
        return ActionRows(names, names, tuple(range(spec.num_actions)))
    row_of = []
    for action in range(spec.num_actions):  # the first class that contains it, else one more row
        rows = [row for row, actions in enumerate(classes.values()) if action in actions]
        row_of.append(rows[0] if rows else len(classes))
    unclassified = [name for name, row in zip(names, row_of) if row == len(classes)]
    last = [OTHER] if len(unclassified) > 1 else unclassified
    return ActionRows(names, (*classes, *last), tuple(row_of))
