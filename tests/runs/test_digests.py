"""Digests of the presets' configs, which must not change: results/ and run folders identify configs by them.

A new digest means that training changes or that recorded digests become invalid; it needs an entry under Results in the
changelog.
"""

import dataclasses
from typing import Any

import pytest

from expgen.agents.consensus import ConsensusConfig
from expgen.algorithms.recipes import RECIPES
from expgen.runs.config import default_config
from expgen.runs.make_config import make_config

WHERE = (("procgen:plunder", "paper"), ("minimaze", "laptop"), ("minimaze", "smoke"))
DIGESTS = {
    "ppo": ("69b2ac841f87", "0e1bb6f0a9b6", "9ae8143f1103"),
    "ppo-gru": ("a82aae231167", "825d5c75711f", "39b034aee641"),
    "maxent": ("a2d59a3e986a", "e151952b98cf", "aa4b9b45ad02"),
    "openend": ("e0c07de1fb01", "90487ee894a0", "9db167e5ba41"),
    "mixed": ("b1b4f6664364", "e608a2f32dff", "607da192b94c"),
    "daac": ("fa25c7125962", "c136b95380da", "0702fac5c93e"),
    "idaac": ("940345397d70", "7f7b4bd6aa40", "e5a621cd246a"),
    "ppg": ("98ee8df7a3ae", "04ae9b0a1c0f", "4c80f0f19360"),
    "leep": ("39584b974902", "9036543739c3", "8a42bfe19304"),
    "plr": ("714fe88aae9c", "de85cd19aecb", "5bef8cc13000"),
    "ucb-drac": ("daa94ba7bb91", "1b2ccea217aa", "f33184cf4e85"),
    "expgen": ("202776b4cf87", "6245be68af16", "45055d027a9a"),
    "expgen-idaac": ("cf4db86200da", "9db1917a8bd7", "ffbe80f7958b"),
}


@pytest.mark.parametrize("algo", RECIPES)
def test_digests_of_presets_do_not_change(algo: str) -> None:
    assert tuple(make_config(env, algo, preset).digest() for env, preset in WHERE) == DIGESTS[algo]


def later_defaults(config: Any) -> dict[str, Any]:
    """Return the defaults of the settings in a tree of configs that digests leave out at their default."""
    found = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        found |= later_defaults(value) if dataclasses.is_dataclass(value) else {}
        found |= {field.name: field.default} if field.metadata.get("is_later") else {}
    return found


def test_defaults_that_digests_leave_out_do_not_change() -> None:
    found = later_defaults(ConsensusConfig())
    for algo in RECIPES:
        found |= later_defaults(default_config(algo))
    assert found == {
        "average": 0.0, "mirror": False, "recolor": False, "precision": "auto", "count": 1, "normalize_obs": False,
        "end_value": 0.0, "death_cost": 0.0, "augmentation": "none", "drac_coef": 0.1,
        "vote": "leader", "once": False, "turn": 50, "patience": 0, "hedge": 0.0,
    }  # fmt: skip
