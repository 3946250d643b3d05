"""Checkpoints of another run are refused; those without an origin, and of the same training, are accepted."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.training.checkpoint import Checkpoint, latest_checkpoint, write_checkpoint
from expgen.training.origin import FACT, check_origin, origin_of

MEMBER = Path("checkpoints", "member0")


def test_origin_of_a_long_list_of_levels_is_short() -> None:
    assert origin_of("minimaze", "ppo", 3, LevelSet((5, 7)))["levels"] == "5,7"
    one, other = (LevelSet((*range(0, 10**6, 2), last)) for last in (10**6, 10**6 + 1))
    texts = [origin_of("minimaze", "ppo", 3, levels)["levels"] for levels in (one, other)]
    assert texts[0] != texts[1] and all(text.startswith("0,2,4,6,8,") and len(text) <= 40 for text in texts)


def test_only_values_that_both_sides_have_are_compared() -> None:
    expected = {"env": "minimaze", "seed": 0, "added_later": 1}
    for facts in ({}, {FACT: {}}, {FACT: {"seed": 0, "env": "minimaze", "removed": 5}}, {FACT: "text"}):
        check_origin(Checkpoint({}, facts), expected, "runs/a member0")
    message = r"^the checkpoint of runs/a member0 is of another run: it was trained with seed 1 instead of 0$"
    with pytest.raises(InputError, match=message):
        check_origin(Checkpoint({}, {FACT: {"env": "minimaze", "seed": 1}}), expected, "runs/a member0")


@pytest.mark.parametrize("changes", [{"seed": 1}, {"algo": "plr"}, {"levels": "3:20"}])
def test_run_refuses_the_checkpoint_of_another_run(
    changes: dict[str, Any], small: Any, refused: Callable[..., str], tmp_path: Path
) -> None:
    small.train(tmp_path / "mine", 1)
    small.train(tmp_path / "other", 1, **changes)
    shutil.rmtree(tmp_path / "mine" / MEMBER)
    shutil.copytree(tmp_path / "other" / MEMBER, tmp_path / "mine" / MEMBER)
    message = f"member0 is of another run: it was trained with {next(iter(changes))} "
    assert message in refused("evaluate", tmp_path / "mine", "--episodes", "1")
    assert message in refused("play", tmp_path / "mine", "--level", "1000")
    with pytest.raises(InputError, match=message):
        small.train(tmp_path / "mine", 2, resume=True)


def test_run_accepts_copies_longer_trainings_and_old_checkpoints(
    small: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    small.train(tmp_path / "mine", 1)
    shutil.copytree(tmp_path / "mine", tmp_path / "copy")
    small.train(tmp_path / "copy", 2, resume=True, members=2)
    words = ("--episodes", "1", "--learner", "member0")
    assert command("evaluate", tmp_path / "copy", *words).status == 0
    tensors, facts = latest_checkpoint(tmp_path / "mine" / MEMBER) or Checkpoint({}, {})
    assert facts.pop(FACT)["seed"] == 0
    (file,) = (tmp_path / "mine" / MEMBER).glob("*.safetensors")
    write_checkpoint(file, tensors, facts)  # as earlier versions wrote it
    assert command("evaluate", tmp_path / "mine", *words).status == 0
    small.train(tmp_path / "mine", 2, resume=True)
    assert small.facts(tmp_path / "mine")[FACT]["seed"] == 0
