"""What the name of an environment means: one spelling for files, several for people."""

import re

from expgen.envs.own_env import OWN_ENVS
from expgen.envs.procgen import GAMES
from expgen.errors import InputError, check_choice
from expgen.plugins import load_entry_points

FAMILIES = ("minimaze", "procgen:GAME", "gymnasium:ID", "envpool:ID")
_FAMILY_NAMES = tuple(family.partition(":")[0] for family in FAMILIES)
_GYMNASIUM_ID = re.compile(r"[^\s,]+-v\d+")


def full_name(name: str, field: str = "--env") -> str:
    """The name that files keep: `maze` → `procgen:maze`, `CartPole-v1` → `gymnasium:CartPole-v1`, others as they are.

    An InputError names `field` where it means nothing.
    """
    family, colon, inside = name.partition(":")
    if name not in (*_FAMILY_NAMES, *GAMES, *OWN_ENVS) and family not in _FAMILY_NAMES:
        load_entry_points()
    if name in OWN_ENVS or name == "minimaze":
        return name
    if name in GAMES:
        return f"procgen:{name}"
    if family == "procgen" and colon:
        return f"procgen:{check_choice('GAME', inside, GAMES)}"
    if family in ("gymnasium", "envpool") and inside:
        return name
    if family not in _FAMILY_NAMES and _GYMNASIUM_ID.fullmatch(name):
        return f"gymnasium:{name}"
    known = ", ".join((*(GAMES if field == "GAME" else ()), *FAMILIES, *OWN_ENVS))
    raise InputError(f"{field} is {name!r}; accepted: {known}, or what --import MODULE registers")
