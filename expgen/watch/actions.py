"""What actions are called, and the rows that votes for them are shown in."""

from typing import NamedTuple

from expgen.agents.agreement import ActionClasses, classes_of
from expgen.envs.minimaze import ACTIONS as MINIMAZE_ACTIONS
from expgen.envs.vec_env import EnvSpec

PROCGEN_ACTIONS = (
    *("left + down", "left", "left + up", "down", "stay", "up", "right + down", "right", "right + up"),
    *("D", "A", "W", "S", "Q", "E"),  # keys; fire, and nothing in most games
)
OTHER = "other"


class ActionRows(NamedTuple):
    """Actions of one effect share a row."""

    actions: tuple[str, ...]  # [A] what each action is called
    rows: tuple[str, ...]  # what each row is called
    row_of: tuple[int, ...]  # [A] the row of each action


def action_names(spec: EnvSpec) -> tuple[str, ...]:
    """What people call the actions; numbers where we know no better."""
    family = spec.name.partition(":")[0]
    if family == "minimaze":
        return ("stay", *MINIMAZE_ACTIONS[1:])
    is_procgen = family == "procgen" or (family == "envpool" and classes_of(spec) is not None)
    if is_procgen and spec.num_actions == len(PROCGEN_ACTIONS):
        return PROCGEN_ACTIONS
    return tuple(f"action {action}" for action in range(spec.num_actions))


def action_rows(spec: EnvSpec, by_action: bool = False) -> ActionRows:
    """Rows by direction of movement, where actions have one; or a row for each action."""
    names = action_names(spec)
    classes: ActionClasses | None = None if by_action else classes_of(spec)
    if classes is None:
        return ActionRows(names, names, tuple(range(spec.num_actions)))
    row_of = [_first_class(action, classes) for action in range(spec.num_actions)]
    outside = [name for name, row in zip(names, row_of) if row == len(classes)]
    last = [] if not outside else outside if len(outside) == 1 else [OTHER]
    return ActionRows(names, (*classes, *last), tuple(row_of))


def _first_class(action: int, classes: ActionClasses) -> int:
    """The first class that holds an action; the number after the last where none does."""
    return next((i for i, actions in enumerate(classes.values()) if action in actions), len(classes))
