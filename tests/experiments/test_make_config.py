"""The config of a run that is asked for by environment, algorithm and preset."""

from pathlib import Path

import pytest

from expgen.envs.vec_env import EnvSpec
from expgen.experiments.run import make_config, open_run
from expgen.experiments.run_folder import RunFolder


@pytest.mark.parametrize(("members", "quorum"), [(1, 1), (2, 2), (3, 3), (5, 5), (8, 8)])
def test_the_laptops_quorum_of_all_stays_one_of_all(members: int, quorum: int) -> None:
    config = make_config("minimaze", "expgen", "laptop", members=members)
    assert config.consensus is not None and config.consensus.min_agree == quorum
    asked = make_config("minimaze", "expgen", "laptop", members=members, min_agree=1)
    assert asked.consensus is not None and asked.consensus.min_agree == 1


@pytest.mark.parametrize(("before", "asked", "after", "quorum"), [(4, {}, 10, 6), (4, {"min_agree": 4}, 10, 10)])
def test_a_population_that_grows_gets_the_quorum_of_its_size(
    before: int, asked: dict, after: int, quorum: int, tmp_path: Path
) -> None:
    frozen = make_config("procgen:maze", "expgen", members=before, **asked)
    RunFolder(tmp_path).write_config(frozen, EnvSpec("procgen:maze", (64, 64, 3), "uint8", 15))
    _, grown = open_run(run=tmp_path, resume=True, members=after)
    assert grown.consensus is not None and (grown.members, grown.consensus.min_agree) == (after, quorum)
