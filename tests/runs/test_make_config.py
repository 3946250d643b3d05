"""make_config and make_consensus: the settings of a run by environment, algorithm and preset."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from expgen.errors import InputError
from expgen.runs import best
from expgen.runs.make_config import RunRequest, make_config, make_consensus, open_run, split_settings
from expgen.runs.shipped import find_agent


@pytest.mark.parametrize(("members", "quorum"), [(1, 1), (2, 2), (3, 3), (5, 5), (8, 8)])
def test_laptop_quorum_is_the_number_of_members(members: int, quorum: int) -> None:
    config = make_config("minimaze", "expgen", "laptop", members=members)
    usual, asked = (make_consensus(config, "laptop", settings) for settings in ({}, {"min_agree": 1}))
    assert usual is not None and usual.min_agree == quorum
    assert asked is not None and asked.min_agree == 1


def test_split_settings_separates_voting_from_training() -> None:
    settings = {"steps": 10, "min_agree": 3, "explorer_gamma": 0.5}
    trains, votes = split_settings("expgen", settings)
    assert (trains, votes) == ({"steps": 10, "explorer_gamma": 0.5}, {"min_agree": 3})
    with pytest.raises(InputError, match="setting 'min_agree' is unknown to --algo ppo"):
        open_run(RunRequest(algo="ppo", settings={"min_agree": 3}))


def test_preset_best_votes_by_majority() -> None:
    consensus = make_consensus(make_config("procgen:maze", "expgen", "best"), "best")
    assert consensus is not None and (consensus.vote, consensus.once, consensus.min_agree) == ("majority", True, 6)
    assert make_consensus(make_config("procgen:maze", "ppo", "best"), "best") is None


def test_preset_best_sets_weights_and_temperature_of_its_own_agent_only(tmp_path: Path) -> None:
    def playing(**changes: Any) -> Mapping[str, Any]:
        asked = {"env": "procgen:starpilot", "run": tmp_path, "preset": "best", **changes}
        return open_run(RunRequest(**asked)).playing

    assert playing() == {"weights": "average", "temperature": best.TEMPERATURES["procgen:starpilot"]}
    assert playing(settings={"temperature": 0.9}) == {"weights": "average", "temperature": 0.9}
    assert playing(env="procgen:ninja") == {"weights": "average", "temperature": 1}
    assert playing(algo="ppo") == playing(preset="paper") == playing(env="procgen:maze") == {}
    assert set(best.TEMPERATURES) <= set(best.ALGOS)


def test_shipped_agents_play_at_the_temperatures_of_preset_best() -> None:
    for env in best.IDAAC_SETTINGS:
        agent = find_agent(f"{env.removeprefix('procgen:')}/best").agent
        assert agent.temperature == best.TEMPERATURES.get(env, 1)
        assert agent.members[0].mirror == best.AUGMENTATION.get(env, {}).get("mirror", False)
