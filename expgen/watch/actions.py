"""What actions are called, and the rows that votes for them are shown in."""

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
    """Actions of one effect share a row."""

    actions: tuple[str, ...]  # [A] what each action is called
    rows: tuple[str, ...]  # what each row is called
    row_of: tuple[int, ...]  # [A] the row of each action


def action_names(spec: EnvSpec) -> tuple[str, ...]:
    """What people call the actions; numbers where we know no better."""
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
    """Rows by direction of movement, where actions have one; or a row for each action.

    `own_names` are what the environment calls its actions, where it says so.
    """
    names = own_names or action_names(spec)
    classes = None if by_action else classes_of(spec)
    if classes is None:
        return ActionRows(names, names, tuple(range(spec.num_actions)))
    row_of = [len(classes)] * spec.num_actions  # the row after the last, unless a class holds the action
    for row, actions in reversed([*enumerate(classes.values())]):  # of several that do, the first
        for action in actions:
            row_of[action] = row
    outside = [name for name, row in zip(names, row_of) if row == len(classes)]
    last = [OTHER] if len(outside) > 1 else outside
    return ActionRows(names, (*classes, *last), tuple(row_of))
