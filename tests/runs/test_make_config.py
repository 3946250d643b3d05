"""make_config and make_consensus: the settings of a run by environment, algorithm and preset."""

from pathlib import Path
from typing import Any

import pytest

from expgen.errors import InputError
from expgen.runs import best
from expgen.runs.make_config import RunRequest, make_config, make_consensus, open_run, split_settings


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


def test_preset_best_sets_the_temperature_of_its_own_agent_only(tmp_path: Path) -> None:
    def temperature(**changes: Any) -> float | None:
        return open_run(
            RunRequest(**{"env": "procgen:starpilot", "run": tmp_path, "preset": "best", **changes})
        ).temperature

    assert temperature() == best.TEMPERATURES["procgen:starpilot"] < 1
    assert temperature(settings={"temperature": 0.9}) == 0.9
    assert temperature(algo="ppo") is None and temperature(preset="paper") is None
    assert set(best.TEMPERATURES) <= set(best.ALGOS)
