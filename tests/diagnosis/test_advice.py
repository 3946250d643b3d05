"""Each verdict and finding, from made-up measurements."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from expgen.agents.decision import Counts
from expgen.diagnosis.advice import findings, is_above
from expgen.diagnosis.measure import Measurements, Play, Player, Votes
from expgen.evaluation.evaluate import Episode, Evaluation
from expgen.evaluation.scores import Split
from expgen.exploration.explore import Exploration, ExploredEpisode, Mean


def score(mean: float, half: float = 0.5) -> Evaluation:
    return Evaluation(mean, 1.0, mean / 10, mean - half, mean + half, [])


def explored(novelty: float, length: int = 100) -> Exploration:
    episode = ExploredEpisode(Episode(0, 0.0, length, False), 1.0, int(novelty), None)
    mean = Mean(novelty, novelty - 1, novelty + 1)
    return Exploration(mean, mean, None, None, score(1), [episode])


def votes(agreed: int = 50, near: float = 0.8, far: float = 0.5) -> Votes:
    return Votes(5, 4, Counts(200, 100, agreed, 0, 40, 20), near, far, np.array([near]))


def measured(found: Votes | None = None, novelty: tuple[float, float] = (60, 30), **returns: float) -> Measurements:
    """Return measurements; `returns` are keyed `member_train`; `novelty` is that of explorer and random actions."""
    plays = []
    for name, mean in {"random_train": 1.0, "random_test": 1.0, **returns}.items():
        player, _, split = name.partition("_")
        new: dict[str, Any] = {"explorer": explored(novelty[0]), "random": explored(novelty[1])}
        plays.append(Play(_player(player), _split(split), score(mean), new.get(player)))
    return Measurements("runs/x", "minimaze", 100, tuple(plays), found)


def _player(name: str) -> Player:
    return name  # type: ignore[return-value]


def _split(name: str) -> Split:
    return name  # type: ignore[return-value]


ALL = {"member_train": 9.0, "member_test": 5.0, "agent_train": 9.0, "agent_test": 8.0}
EXPLORER = {"explorer_train": 4.0, "explorer_test": 4.0}


def test_is_above_adds_intervals_as_independent_errors() -> None:
    assert is_above(score(5.8), score(5.0)) and not is_above(score(5.7), score(5.0))  # √(0.5² + 0.5²) = 0.707
    assert not is_above(score(5.0), score(5.8))
    assert is_above(Mean(3, 2, 4), Mean(1, 0, 2)) and not is_above(Mean(2, 1, 3), Mean(1, 0, 2))


def test_verdict_is_that_expgen_helps_when_agent_beats_member() -> None:
    verdict, *rest = findings(measured(votes(), **ALL, **EXPLORER))
    assert verdict.what == (
        "ExpGen helps here: 8.00 (7.50 to 8.50) on unseen levels, a member alone 5.00 (4.50 to 5.50)"
    )
    assert [part.change for part in rest] == [""] * len(rest)
    assert {part.about for part in rest} == {"gap", "agreement", "coverage"}
    assert "4.00 less" in rest[0].what and "1.00 less" in rest[1].what


def test_verdict_is_no_gain_when_members_generalise() -> None:
    verdict, *_ = findings(measured(votes(), **{**ALL, "member_test": 8.8, "agent_test": 8.6}, **EXPLORER))
    assert verdict.what.startswith("ExpGen has nothing to gain here: a member alone gets 8.80") and not verdict.change
    verdict, gap, *_ = findings(measured(votes(), **{**ALL, "member_test": 9.5, "agent_test": 2.0}, **EXPLORER))
    assert "exploration lowers the agent's score to 2.00 (1.50 to 2.50)" in verdict.what
    assert verdict.change == "play a member alone" and gap.what.endswith("0.50 more")


@pytest.mark.parametrize(
    ("found", "novelty", "because"),
    [
        (votes(), (30, 30), "the explorer finds no more than random actions"),
        (votes(), (98, 95), "almost every frame is new, even under random actions (95% of their steps"),
        (votes(near=0.5, far=0.5), (60, 30), "agreement does not indicate correct actions"),
        (votes(agreed=95), (60, 30), "4 of 5 members agreed in 95% of the votes, so the explorer hardly ever"),
        (votes(agreed=5), (60, 30), "4 of 5 members agreed in 5% of the votes, so members hardly ever"),
    ],
)
def test_verdict_gives_the_reason_when_expgen_does_not_help(
    found: Votes, novelty: tuple[float, float], because: str
) -> None:
    verdict, *rest = findings(measured(found, novelty, **{**ALL, "agent_test": 5.2}, **EXPLORER))
    assert verdict.what.startswith("ExpGen does not help here: 5.20") and f", because {because}" in verdict.what
    assert any(part.change for part in rest)


def test_verdict_advises_tuning_when_no_reason_is_found() -> None:
    verdict, *_ = findings(measured(votes(), **{**ALL, "agent_test": 5.2}, **EXPLORER))
    assert "agreement and coverage show no problem" in verdict.what and "expgen tune" in verdict.change


def test_verdict_is_too_early_when_members_learned_nothing() -> None:
    verdict, *_ = findings(measured(votes(), **{**ALL, "member_train": 1.2}))
    assert verdict.what.startswith("too early: ") and "--steps" in verdict.change


def test_verdict_is_open_without_unseen_levels() -> None:
    plays = tuple(play for play in measured(member_train=9.0).plays if play.split == "train")
    verdict, *_ = findings(Measurements("runs/x", "gymnasium:X", 10, plays, None))
    assert verdict.what == "no verdict: there are no unseen levels"


def test_overfitting_policy_is_advised_to_use_expgen_unless_all_frames_are_new() -> None:
    alone = {"member_train": 9.0, "member_test": 5.0}
    assert findings(measured(**alone))[0].change == "train a population: --algo expgen"
    assert "unlikely to help: almost every frame is new" in findings(measured(novelty=(0, 99), **alone))[0].what


def test_explorer_without_members_gets_no_verdict_on_generalization() -> None:
    verdict, *rest = findings(measured(**EXPLORER))
    assert verdict.what.startswith("explorer only") and rest[0].about == "coverage"


def test_explorer_that_beats_agent_is_advised_to_play_alone() -> None:
    *_, last = findings(measured(votes(), **ALL, explorer_train=9.5, explorer_test=9.5))
    assert last.about == "explorer" and "play it alone" in last.change


def test_agreement_near_success_is_unknown_without_success() -> None:
    parts = findings(measured(votes(near=math.nan), **ALL))
    assert any("agreement near success is unknown" in part.what for part in parts)


def test_advice_names_flags_of_the_kind_of_run() -> None:
    alone = findings(measured(novelty=(30, 30), **EXPLORER))[-1]
    assert "(--steps)" in alone.change and "(--end-value)" in alone.change
    population = next(part for part in findings(measured(novelty=(30, 30), **ALL, **EXPLORER)) if part.change)
    assert "(--explorer-steps)" in population.change and "(--explorer-end-value)" in population.change


def test_end_value_is_not_advised_to_explorers_that_have_one() -> None:
    last = findings(replace(measured(novelty=(30, 30), **EXPLORER), end_value=0.9))[-1]
    assert last.change == "train the explorer longer (--steps)"


@pytest.mark.parametrize("agreed", [95, 5])
def test_quorum_advice_is_omitted_for_members_that_do_not_vote(agreed: int) -> None:
    parts = findings(measured(votes(agreed=agreed), member_train=9.0, member_test=5.0))
    part = next(part for part in parts if part.about == "agreement")
    assert part.what == f"4 of 5 members agreed in {agreed}% of the votes" and not part.change
