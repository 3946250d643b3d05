"""open_run: folder and config of a new or resumed run."""

from pathlib import Path
from typing import Any

import pytest

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.runs.agent_files import describe_run, read_agent, write_agent
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import RunRequest, default_folder, make_config, make_consensus, open_run


def test_default_folder_has_game_algorithm_and_seed() -> None:
    assert default_folder(make_config("procgen:maze", "ppo-gru", seed=3)) == Path("runs/maze-ppo-gru-seed3")
    assert default_folder(make_config("gymnasium:ALE/Pong-v5")) == Path("runs/ALE-Pong-v5-ppo-seed0")


def test_folder_with_checkpoints_but_no_config_is_refused(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1)
    (tmp_path / "config.json").unlink()
    with pytest.raises(
        InputError, match=r"has checkpoints but no config\.json; accepted: a folder without checkpoints"
    ):
        small.train(tmp_path, 2)


@pytest.mark.parametrize(("before", "asked", "after", "quorum"), [(4, {}, 10, 6), (4, {"min_agree": 4}, 10, 10)])
def test_resume_with_more_members_adapts_the_quorum(
    before: int, asked: dict, after: int, quorum: int, tmp_path: Path
) -> None:
    frozen = make_config("procgen:maze", "expgen", members=before)
    spec = EnvSpec("procgen:maze", (64, 64, 3), "uint8", 15)
    RunFolder(tmp_path).write_config(frozen, spec)
    write_agent(describe_run(tmp_path, frozen, spec, make_consensus(frozen, settings=asked)))
    grown = open_run(RunRequest(run=tmp_path, resume=True, settings={"members": after}))
    assert grown.consensus is not None and (grown.config.members, grown.consensus.min_agree) == (after, quorum)


def test_resume_can_change_voting_without_changing_the_config(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1, algo="expgen", members=2, **small.explorer)
    before = (tmp_path / "config.json").read_text()
    small.train(tmp_path, 1, resume=True, min_agree=1, vote="majority")
    consensus = read_agent(tmp_path).consensus
    assert consensus is not None and (consensus.min_agree, consensus.vote) == (1, "majority")
    assert (tmp_path / "config.json").read_text() == before
