"""EvaluationRequest: the selected players and levels, and invalid requests."""

from functools import partial
from typing import Any

import pytest

from expgen.agents.agent import PolicyAgent
from expgen.agents.consensus import ConsensusAgent
from expgen.agents.description import AgentDescription
from expgen.errors import InputError
from expgen.evaluation.scores import agent_name
from expgen.runs.agent_files import read_agent
from expgen.runs.request import EvaluationRequest, score_all, single_requests, split_of


@pytest.fixture(scope="module")
def run(small: Any, tmp_path_factory: pytest.TempPathFactory) -> AgentDescription:
    run = tmp_path_factory.mktemp("runs") / "two"
    small.train(run, updates=1, members=2)
    return read_agent(run)


@pytest.fixture(scope="module")
def population(small: Any, tmp_path_factory: pytest.TempPathFactory) -> AgentDescription:
    run = tmp_path_factory.mktemp("runs") / "population"
    small.train(run, updates=1, algo="expgen", members=2, **small.explorer)
    return read_agent(run)


def test_each_learner_is_scored_on_the_requested_levels(run: AgentDescription) -> None:
    for split, levels, shown in (("train", None, "0:20"), ("test", None, "all"), (None, "3,4", "3,4")):
        request = EvaluationRequest(split, levels, episodes=6, envs=4)
        rows = [scored.score for scored in score_all(run, request)]
        assert [row.agent for row in rows] == ["member0", "member1"]
        assert {(row.levels, row.episodes) for row in rows} == {(shown, 6)}
    assert rows[0].split == "train"  # the split follows from the levels


def test_levels_of_another_split_are_refused(run: AgentDescription) -> None:
    for split, levels, kind in (("train", "20:5", "unseen"), ("test", "3,4", "training")):
        request = EvaluationRequest(split, levels)  # type: ignore[arg-type]
        for ask in (lambda asked: next(score_all(run, asked)), partial(single_requests, run)):
            with pytest.raises(InputError, match=f"--split is {split} but --levels {levels} are {kind} levels"):
                ask(request)


def test_score_does_not_depend_on_the_number_of_envs(run: AgentDescription) -> None:
    asked = [EvaluationRequest(episodes=12, learner="member0", envs=envs) for envs in (4, 12)]
    rows = [next(score_all(run, request)).score for request in asked]
    assert rows[0] == rows[1]


def test_split_of_refuses_a_mix_of_training_and_unseen_levels(run: AgentDescription) -> None:
    assert split_of(run, "20")[0] == "train" and split_of(run, "19,3")[0] == "train"
    assert split_of(run, "20:5")[0] == "test"
    split, levels = split_of(run, "all")
    assert split == "test" and 19 not in levels and 20 in levels
    for mixed in ("21", "19,20", "19:2"):
        with pytest.raises(InputError, match=f"--levels {mixed} overlap the training levels 0:20; accepted: all or"):
            split_of(run, mixed)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"episodes": 0}, "--episodes is 0; accepted: 1 to 10000000"),
        ({"envs": -1}, "--envs is -1; accepted: 1 to 65536"),
        ({"seed": -1}, "--seed is -1; accepted: 0 to"),
        ({"seed": 2**31}, f"--seed is {2**31}; accepted: 0 to {2**31 - 1}"),
    ],
)
def test_request_out_of_range_is_refused(changes: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        EvaluationRequest(**changes)


@pytest.mark.parametrize(
    ("learner", "selected"),
    [(None, [None]), ("each", ["member0", "member1", "explorer"]), ("explorer", ["explorer"])],
)
def test_request_for_a_population_is_split_by_player(
    learner: str | None, selected: list[str | None], population: AgentDescription
) -> None:
    request = EvaluationRequest("train", episodes=3, seed=4, learner=learner)
    singles = single_requests(population, request)
    assert sorted(map(str, (one.learner for one in singles))) == sorted(map(str, selected))
    assert all((one.split, one.episodes, one.seed) == ("train", 3, 4) for one in singles)
    for one in singles:  # each request for a cluster selects one agent
        assert [again.learner for again in single_requests(population, one)] == [one.learner]


def test_request_without_an_ensemble_selects_every_member(run: AgentDescription) -> None:
    singles = single_requests(run, EvaluationRequest())
    assert [one.learner for one in singles] == ["member0", "member1"]


def test_ensemble_and_single_policies_are_scored(population: AgentDescription) -> None:
    (whole,) = score_all(population, EvaluationRequest(episodes=2, consensus={"min_agree": 1}))
    assert isinstance(whole.agent, ConsensusAgent) and whole.exploration is None
    assert (whole.score.algorithm, agent_name(whole.score)) == ("expgen", "expgen min_agree=1 members=2")
    (all_of_them,) = score_all(population, EvaluationRequest(episodes=2, consensus={"ensemble_size": 0}))
    assert agent_name(all_of_them.score) == "expgen members=2"
    (explorer,) = score_all(population, EvaluationRequest(episodes=2, learner="explorer"))
    assert whole.deaths == (0, 0) and explorer.deaths is None  # a maze has no deaths
    assert isinstance(explorer.agent, PolicyAgent) and explorer.score.algorithm == "maxent"
    assert explorer.exploration is not None and explorer.score.episodes == 2


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (EvaluationRequest(learner="member7"), "--learner is 'member7'; accepted: each, "),
        (EvaluationRequest(learner="member0", consensus={"alpha": 0.5}), "--alpha is a setting of ensembles"),
        (EvaluationRequest(consensus={"stretch": "table", "alpha": 0.3}), "--stretch is table, .* but α is 0.3"),
        (EvaluationRequest(consensus={"quorum": 2}), "setting 'quorum' of the ensemble is unknown"),
        (EvaluationRequest(levels="5,30"), "--levels 5,30 overlap the training levels"),
    ],
)
def test_request_that_does_not_fit_the_run_is_refused(
    request_: EvaluationRequest, message: str, population: AgentDescription
) -> None:
    with pytest.raises(InputError, match=message):
        list(score_all(population, request_))
