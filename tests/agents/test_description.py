"""agent.json: round trip and rejection of invalid content."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from expgen.agents.consensus import ConsensusConfig
from expgen.agents.description import (
    AgentDescription,
    PolicyDescription,
    agent_text,
    to_json,
    with_policy_paths,
)
from expgen.algorithms.recipes import recipe_of
from expgen.envs.levels import LevelSet
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.files import join_inside


def policy(path: str, algo: str = "ppo", seed: int = 0) -> PolicyDescription:
    recipe = recipe_of(algo)
    levels = LevelSet(range(seed, seed + 20))
    return PolicyDescription(path, algo, seed, levels, recipe.network, recipe.config, recipe.reward)


AGENT = AgentDescription(
    folder=Path("somewhere"),
    algo="expgen",
    seed=3,
    env="procgen:maze",
    options={"hidden": True},
    spec=EnvSpec("procgen:maze", (64, 64, 3), "uint8", 15),
    levels=LevelSet(range(21)),
    test_levels=LevelSet(None),
    members=(policy("a/checkpoints/member0"), policy("a/checkpoints/member1", "leep", seed=1)),
    explorers=(policy("b/checkpoints/member0", "maxent"),),
    consensus=ConsensusConfig(min_agree=2, vote="majority"),
    weights="average",
    tuned=("alpha",),
)


def test_description_round_trips_through_json() -> None:
    data = json.loads(agent_text(AGENT))
    assert data == to_json(AGENT) and "somewhere" not in agent_text(AGENT)
    assert AgentDescription.from_json(AGENT.folder, data) == AGENT
    alone = replace(AGENT, explorers=(), consensus=None, members=AGENT.members[:1])
    assert AgentDescription.from_json(AGENT.folder, json.loads(agent_text(alone))) == alone


def test_agent_text_has_one_line_per_policy() -> None:
    lines = agent_text(AGENT).splitlines()
    for path in ("a/checkpoints/member0", "a/checkpoints/member1", "b/checkpoints/member0"):
        assert sum(path in line for line in lines) == 1


def test_test_set_excludes_training_levels() -> None:
    assert 20 not in AGENT.test_set and 21 in AGENT.test_set
    assert replace(AGENT, test_levels=LevelSet(range(50, 60))).test_set == LevelSet(range(50, 60))
    assert not replace(AGENT, levels=LevelSet(None)).has_unseen_levels


@pytest.mark.parametrize("path", ["/etc", "../other/checkpoints/member0", "a/../../b", "", "."])
def test_path_outside_the_folder_is_rejected(path: str) -> None:
    with pytest.raises(InputError, match="is not safe; accepted: a relative path"):
        join_inside(Path("somewhere"), path)
    data = to_json(AGENT)
    data["members"][1]["path"] = path
    with pytest.raises(InputError, match="is not safe"):
        AgentDescription.from_json(AGENT.folder, data)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": [], "explorers": []}, "members is empty; accepted: 1 policy or more"),
        ({"weights": "mean"}, "weights is 'mean'; accepted: live, average"),
        ({"consensus": {"quorum": 2}}, "consensus has a field 'quorum'; accepted: ensemble_size"),
        ({"consensus": {"leader": 2}}, "--leader is 2; accepted: 0 to 1"),
        ({"consensus": {"alpha": 0}}, "--alpha is 0; accepted: 0.001 to 1"),
        ({"members": [], "consensus": {"leader": 2}}, "--leader is 2; accepted: 0 to 0"),
        ({"tuned": ["quorum"]}, "tuned is 'quorum'; accepted: ensemble_size, leader"),
        ({"levels": "few"}, "levels is 'few'"),
        (
            {"test_levels": "20:9"},
            "test_levels is 20:9, which overlaps the training levels 0:21; accepted: levels that no policy",
        ),
    ],
)
def test_invalid_agent_fields_are_rejected(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AgentDescription.from_json(AGENT.folder, {**to_json(AGENT), **changes})


def test_with_policy_paths_keeps_only_policies_with_a_path() -> None:
    moved = with_policy_paths(AGENT, Path("there"), {"member1": "checkpoints/member1", "explorer": "x"})
    assert {name: one.path for name, one in moved.policies.items()} == {
        "member0": "checkpoints/member1",
        "explorer": "x",
    }
    assert moved.members[0].algo == "leep" and moved.checkpoints_of("explorer") == Path("there/x")
