"""What actions are called, and the rows that votes for them are shown in."""

from typing import NamedTuple

from expgen.agents.vote import classes_of
from expgen.envs.minimaze import ACTIONS as MINIMAZE_ACTIONS
from expgen.envs.vec_env import EnvSpec

PROCGEN_ACTIONS = (
    *("left + down", "left", "left + up", "down", "stay", "up", "right + down", "right", "right + up"),
    *("key D", "key A", "key W", "key S", "key Q", "key E"),  # fire, and nothing in most games
)
FIRING = ("bossfight", "caveflyer", "dodgeball", "fruitbot", "plunder", "starpilot")  # where D shoots or throws
GYMNASIUM_ACTIONS = {
    "Acrobot": ("push left", "no push", "push right"),
    "Blackjack": ("stick", "hit"),
    "CartPole": ("push left", "push right"),
    "CliffWalking": ("up", "right", "down", "left"),
    "FrozenLake": ("left", "down", "right", "up"),
    "LunarLander": ("no engine", "left engine", "main engine", "right engine"),
    "MountainCar": ("push left", "no push", "push right"),
    "Taxi": ("down", "up", "right", "left", "pick up", "drop off"),
}  # as its documentation numbers them
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
    if is_procgen and spec.num_actions == len(PROCGEN_ACTIONS):
        fires = game.lower().startswith(FIRING)
        return tuple("fire" if name == "key D" and fires else name for name in PROCGEN_ACTIONS)
    known = GYMNASIUM_ACTIONS.get(game.rpartition("/")[2].partition("-v")[0], ())
    if len(known) == spec.num_actions:
        return known
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
