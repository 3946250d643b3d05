"""Policies trained elsewhere become members and explorer of a run."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from expgen.errors import InputError
from expgen.evaluation.scores import agent_name, read_scores
from expgen.runs.adopt import read_adopted
from expgen.runs.folder import RunFolder
from expgen.runs.plan import member_levels


@pytest.fixture
def parts(small: Any, tmp_path: Path) -> Path:
    """Two members trained in one run, an explorer in another."""
    small.train(tmp_path / "members", 2, algo="ppo", members=2)
    small.train(tmp_path / "explorer", 2, algo="maxent")
    return tmp_path


def population(small: Any, parts: Path, **changes: Any) -> Any:
    settings = {"algo": "expgen", "members": 3, "resume": True}
    settings |= {**small.explorer, "explorer_steps": 2 * small.update_steps}
    runs = [parts / "members", parts / "explorer"]
    return small.train(parts / "whole", 2, **{**settings, "adopt": runs, **changes})


def test_what_was_trained_elsewhere_is_not_trained_again(small: Any, equal: Any, parts: Path) -> None:
    for _ in range(2):  # the same command again changes nothing
        assert population(small, parts).is_complete
        for mine, run, theirs in (
            ("member0", "members", "member0"),
            ("member1", "members", "member1"),
            ("explorer", "explorer", "member0"),
        ):
            assert equal(small.weights(parts / "whole", mine), small.weights(parts / run, theirs))
    assert small.facts(parts / "whole", "member2")["env_steps"] == 2 * small.update_steps  # this one is its own


def test_a_copy_that_was_never_finished_is_made_again(small: Any, equal: Any, parts: Path) -> None:
    """Killed between the record and the checkpoint: the place is still free, and nobody joins twice."""
    whole = RunFolder(parts / "whole")
    population(small, parts)
    shutil.rmtree(whole.checkpoints_of("member1"))
    assert set(read_adopted(whole)) == {"member0", "explorer"}
    population(small, parts)
    assert set(read_adopted(whole)) == {"member0", "member1", "explorer"}
    assert equal(small.weights(whole.path, "member1"), small.weights(parts / "members", "member1"))
    digest = RunFolder(parts / "members").read_config()[0].digest()
    assert read_adopted(whole)["member1"].config == digest


def test_what_joins_complete_is_scored_as_itself(small: Any, parts: Path) -> None:
    small.train(parts / "more", 2, algo="ppo", seed=40, member_levels="bootstrap")
    runs = [parts / "more", parts / "explorer"]
    for _ in range(2):  # the second time there is nothing left to score
        population(small, parts, adopt=runs, seed=7, members=2, eval_every=10**9)
        rows = read_scores(parts / "whole" / "scores.csv")
        assert sorted((agent_name(row), row.seed, row.split) for row in rows) == [
            *(("expgen fallback=random members=2", 7, split) for split in ("test", "train")),
            *(("expgen members=2", 7, split) for split in ("test", "train")),
            *(("explorer", 0, "test"), ("explorer", 0, "train")),
            *(("member0", 40, "test"), ("member0", 40, "train"), ("member1", 8, "test"), ("member1", 8, "train")),
        ]
    config, _ = RunFolder(parts / "more").read_config()
    own = next(row.levels for row in rows if (row.agent, row.split) == ("member0", "train"))
    assert own == str(member_levels(config, 40)) != "0:20"


def test_what_joins_unfinished_goes_on_as_itself(small: Any, equal: Any, tmp_path: Path) -> None:
    small.train(tmp_path / "short", 2, seed=40, member_levels="bootstrap")
    small.train(tmp_path / "long", 4, seed=40, member_levels="bootstrap")
    small.train(tmp_path / "whole", 4, seed=7, members=2, adopt=[tmp_path / "short"])
    assert equal(small.state(tmp_path / "whole"), small.state(tmp_path / "long"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": 1}, "member1 finds no free place: all 1 are taken; accepted: more --members"),
        ({"features": 8}, "has network NetworkConfig.*features=16.*; accepted: NetworkConfig.*features=8"),
        ({"options": {"texture": 0}}, "plays minimaze; accepted: runs on minimaze with these options"),
        ({"levels": "10"}, "has trained on levels 20; accepted: levels among --levels 10, so that"),
        ({"envs": 4, "steps": 512}, "has --envs 8; accepted: 4, as here"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str, small: Any, parts: Path) -> None:
    with pytest.raises(InputError, match=message):
        population(small, parts, **changes)


def test_another_algorithm_is_refused(small: Any, parts: Path) -> None:
    with pytest.raises(InputError, match="member0 is ppo; accepted: ppo-gru"):
        small.train(parts / "other", 2, algo="ppo-gru", adopt=[parts / "members"])


def test_rollouts_of_other_lengths_join_unless_a_history_keeps_some(small: Any, tmp_path: Path) -> None:
    for algo in ("ppo", "ppg"):
        small.train(tmp_path / algo, steps=64, rollout_steps=8, algo=algo)
    assert small.train(tmp_path / "on", 1, adopt=[tmp_path / "ppo"]).is_complete
    with pytest.raises(InputError, match="member0 keeps rollouts of --rollout-steps 8; accepted: 16, as here"):
        small.train(tmp_path / "not", 1, algo="ppg", adopt=[tmp_path / "ppg"])
