"""What actions are called, and the rows that votes for them are shown in."""

from collections.abc import Mapping, Sequence
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
    if spec.num_actions == len(PROCGEN_ACTIONS) and (family == "procgen" or spec.action_classes is None):
        return PROCGEN_ACTIONS if classes_of(spec) is not None else _numbers(spec)
    return _numbers(spec)


def action_rows(spec: EnvSpec, by_action: bool = False) -> ActionRows:
    """Rows by direction of movement, where actions have one; or a row for each action."""
    names = action_names(spec)
    classes: ActionClasses | None = None if by_action else classes_of(spec)
    if classes is None:
        return ActionRows(names, names, tuple(range(spec.num_actions)))
    return ActionRows(names, *_classed(spec.num_actions, classes))


def _classed(num_actions: int, classes: Mapping[str, Sequence[int]]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """An action of several classes stands in the first; one of none in a row of its own at the end."""
    rows = list(classes)
    row_of = [next((i for i, name in enumerate(rows) if action in classes[name]), -1) for action in range(num_actions)]
    if -1 in row_of:
        rows.append(OTHER)
    return tuple(rows), tuple(row % len(rows) for row in row_of)


def _numbers(spec: EnvSpec) -> tuple[str, ...]:
    return tuple(f"action {action}" for action in range(spec.num_actions))
