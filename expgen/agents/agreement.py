"""Who agrees with the leader: classes of equivalent actions, as data, and the counting of votes.

The paper asks for a_i = a_j; its code compares movement directions, which is what its scores come from (in Maze three
ids each go left and right, and members trained apart settle on different ones). Both are here: `classes=None` makes
every action a class of its own.

An action may stand in several classes: a diagonal counts for both its directions. The class of the *leader's* action
is the first that holds it, in the order written. A member always agrees with itself; an action that stands in no class
(standing still in a maze) agrees with nothing else, not even with the same action of another member.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy import ndarray

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError

ActionClasses = Mapping[str, Sequence[int]]

GRID: ActionClasses = {"up": (5,), "right": (6, 7, 8), "down": (3,), "left": (0, 1, 2)}
DIRECTIONS: ActionClasses = {
    "up": (2, 5, 8),
    "right": (6, 7, 8),
    "down": (0, 3, 6),
    "left": (0, 1, 2),
    "fire": (9,),
    "else": (4, 10, 11, 12, 13, 14),
}
MINIMAZE: ActionClasses = {"up": (3,), "right": (2,), "down": (4,), "left": (1,)}
BY_NAME = {"procgen:maze": GRID, "procgen:miner": GRID, "minimaze": MINIMAZE}
_ENVPOOL_GAME = re.compile(r"envpool:(\w+?)(Easy|Hard|Extreme|Memory|Exploration)-v\d+")
_PROCGEN_ACTIONS = 15


def classes_of(spec: EnvSpec) -> ActionClasses | None:
    """What the environment declares, else what we know of it, else None: each action a class of its own."""
    if spec.action_classes is not None:
        return spec.action_classes
    name = spec.name
    if spec.num_actions == _PROCGEN_ACTIONS and (task := _ENVPOOL_GAME.fullmatch(name)):
        name = f"procgen:{task[1].lower()}"
    return BY_NAME.get(name, DIRECTIONS if name.startswith("procgen:") else None)


class Agreement:
    """Counts the members whose action is as good as the leader's, the leader included.

    `no_op_is_up` is a quirk of the paper's code: a leader's action outside all classes is taken for "up" and carried
    out if enough *others* go up. (Its second quirk, members that miscount standing still, is not kept.)
    """

    def __init__(self, num_actions: int, classes: ActionClasses | None, no_op_is_up: bool = False) -> None:
        if classes is None:
            classes = {str(action): (action,) for action in range(num_actions)}
        holds = np.zeros((len(classes), num_actions), dtype=bool)  # [C, A]
        for row, (name, actions) in zip(holds, classes.items()):
            if not all(0 <= action < num_actions for action in actions):
                raise InputError(f"action class {name!r} is {list(actions)}; accepted: ids in 0..{num_actions - 1}")
            row[list(actions)] = True
        has_class = np.logical_or.reduce(holds, axis=0)  # [A]
        first_class = holds.argmax(0)  # [A]
        if no_op_is_up and "up" in classes:
            first_class[~has_class] = list(classes).index("up")
            has_class[:] = True
        self.counts_for = holds[first_class] & has_class[:, None]  # [A, A] leader's action × another member's
        self.counts_itself = self.counts_for.diagonal() | ~has_class  # [A] all, but for the quirk's
        self.counts_alone = self.counts_itself & ~self.counts_for.diagonal()  # [A] stands in no class

    def count(self, votes: ndarray, leader: int | ndarray) -> ndarray:
        """`votes` `[M, N]` actions, −1 for none → how many agree with member `leader` (or `[N]` of them), `[N]`."""
        column = np.arange(votes.shape[1])
        return self.support(votes)[votes[leader, column], column]

    def support(self, votes: ndarray) -> ndarray:
        """`votes` `[M, N]` actions, −1 for none → how many agree with a member that votes for each action, `[A, N]`."""
        action = np.arange(len(self.counts_for))
        votes_for = (votes == action[:, None, None]).sum(1)  # [A, N]
        return self.counts_for.astype(np.int64) @ votes_for + self.counts_alone[:, None]
