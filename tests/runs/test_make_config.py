"""The config of a run that is asked for by environment, algorithm and preset."""

import pytest

from expgen.runs.make_config import make_config


@pytest.mark.parametrize(("members", "quorum"), [(1, 1), (2, 2), (3, 3), (5, 5), (8, 8)])
def test_the_laptops_quorum_of_all_stays_one_of_all(members: int, quorum: int) -> None:
    config = make_config("minimaze", "expgen", "laptop", members=members)
    assert config.consensus is not None and config.consensus.min_agree == quorum
    asked = make_config("minimaze", "expgen", "laptop", members=members, min_agree=1)
    assert asked.consensus is not None and asked.consensus.min_agree == 1
