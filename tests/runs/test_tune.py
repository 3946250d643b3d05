"""expgen tune: the levels it plays, the settings it picks, and the tuned agent."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import expgen
from expgen.agents.consensus import ConsensusAgent
from expgen.agents.decision import Counts
from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.evaluation import evaluate as evaluation
from expgen.evaluation.evaluate import Episode, Evaluation
from expgen.runs import progress
from expgen.runs.agent_files import read_agent, write_agent
from expgen.runs.request import EvaluationRequest, score_all
from expgen.runs.shipped import bundled_agents
from expgen.runs.tune import COLUMNS, Trial, best_trial, play_seed, tune, tuned_agent, write_trials
from expgen.runs.tune_request import Settings, TuneRequest, tuning_levels
from expgen.settings import LAST_SEED
from tests.policies import load_run


def population(small: Any, run: Path, **changes: Any) -> Path:
    settings = {"algo": "expgen", "members": 4, "member_levels": "bootstrap"}
    small.train(run, 1, **{**settings, **small.explorer, **changes})
    return run


@pytest.fixture(scope="module")
def run(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return population(small, tmp_path_factory.mktemp("runs") / "population")


def trial(min_agree: int, alpha: float, mean: float, temperature: float = 1.0) -> Trial:
    evaluation = Evaluation(mean, 0, mean / 10, mean, mean, [Episode(0, mean, 9, False)])
    return Trial(Settings(min_agree, alpha, temperature), evaluation, NO_COUNTS)


NO_COUNTS = Counts(10, 8, 4, 0, 3, 2)


def test_tune_plays_training_levels_that_two_members_never_saw(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = read_agent(run)
    seen, levels = [member.levels for member in agent.members], tuning_levels(agent)
    assert 0 < len(levels) < 20 and all(level < 20 for level in levels.seeds or ())
    made: list[Any] = []
    original = evaluation.build_env
    monkeypatch.setattr(
        evaluation, "build_env", lambda *words, **more: made.append(original(*words, **more)) or made[-1]
    )
    trials = list(tune(agent, TuneRequest(quorums=(2, 4), alphas=(0.5, 1.0), episodes=24, envs=4)))
    assert [one.settings for one in trials] == [(2, 0.5, 1), (2, 1.0, 1), (4, 0.5, 1), (4, 1.0, 1)]
    for one, env in zip(trials, made, strict=True):
        assert env.levels == levels  # further episodes, beyond the list, are drawn from these too
        played = [episode.level for episode in one.evaluation.episodes]
        assert len(played) == 24 and set(played) == set(levels.seeds or ())
        assert all(sum(level not in own for own in seen) >= 2 for level in played)


def test_tune_plays_only_levels_that_the_explorer_left_out(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path / "explorer", 1, algo="maxent", levels="12")
    population(small, tmp_path / "population")
    members = [{"path": f"population/checkpoints/member{index}"} for index in range(4)]
    agent = {"members": members, "explorer": {"path": "explorer/checkpoints/member0"}}
    (tmp_path / "both.json").write_text(json.dumps(agent))
    both = read_agent(tmp_path / "both.json")
    seen, levels = [member.levels for member in both.members], tuning_levels(both)
    assert levels.seeds and len(seen) == 4
    expected = [level for level in range(12, 20) if sum(level not in own for own in seen) >= 2]
    assert list(levels.seeds) == expected


def test_best_trial_has_the_highest_return_then_the_lowest_quorum() -> None:
    trials = [trial(5, 0.5, 7.0), trial(3, 1.0, 8.0), trial(4, 0.5, 8.0), trial(3, 0.25, 8.0), trial(1, 0.5, 4.0)]
    assert best_trial(trials) is trials[3]  # 0.25 is nearer to 0.5 than 1 is
    trials = [trial(3, 0.5, 8.0, temperature) for temperature in (0.25, 0.5, 2.0)]
    assert best_trial(trials) is trials[1]  # as near as possible to the temperature of training


def test_tuned_agent_plays_the_pick_unless_overridden(small: Any, tmp_path: Path) -> None:
    run = population(small, tmp_path / "run")
    before = load_run(run)
    trials = [trial(2, 0.5, 7.0), trial(3, 0.25, 8.0)]
    write_agent(tuned_agent(read_agent(run), trials[1]))
    tuned = load_run(run)
    assert (before.settings, tuned.settings) == ({"members": 4}, {"members": 4, "tuned": "min_agree:3+alpha:0.25"})
    assert isinstance(tuned.agent, ConsensusAgent) and (tuned.agent.quorum, tuned.agent.config.alpha) == (3, 0.25)
    asked = expgen.load_agent(run, min_agree=4)
    assert isinstance(asked, ConsensusAgent) and (asked.quorum, asked.config.alpha) == (4, 0.25)
    fewer = expgen.load_agent(run, ensemble_size=2)
    assert isinstance(fewer, ConsensusAgent) and fewer.quorum == 2  # the quorum is scaled
    population(small, run, resume=True)
    assert load_run(run).settings == tuned.settings  # resuming keeps it
    shutil.copytree(run, tmp_path / "colder")
    population(small, tmp_path / "colder", resume=True, temperature=0.5)
    assert read_agent(tmp_path / "colder").tuned == ()  # tuned at another temperature
    population(small, run, resume=True, members=7)
    grown = read_agent(run)
    assert grown.consensus is not None and (grown.consensus.min_agree, grown.tuned) == (5, ())  # 1 + ⅔ of six


def test_write_trials_has_a_row_per_trial_and_marks_the_pick(run: Path, tmp_path: Path) -> None:
    trials = [trial(2, 0.5, 7.0), trial(3, 0.25, 8.0)]
    agent = replace(read_agent(run), members=read_agent(run).members[:4])
    write_trials(tmp_path / "tune.csv", agent, LevelSet((7, 9)), trials, trials[1])
    lines = (tmp_path / "tune.csv").read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS) and lines[1].split(",")[-2] == "0"
    assert lines[2].startswith('3,4,0.25,1,"7,9",1,8,0.8,8,8,0.3,live,1,')


def test_tune_prints_and_writes_the_grid(run: Path, command: Callable[..., Any]) -> None:
    outcome = command("tune", run, "--quorums", "1,4", "--alphas", "0.5", "--episodes", "8")
    assert outcome.status == 0 and outcome.err == ""
    first, header, one, four, picked, paper = outcome.out.splitlines()
    assert "of 20 training levels are unseen by two or more of 4 members" in first
    assert header.split()[:4] == ["agree", "alpha", "temperature", "return"]
    assert one.split()[:5] == ["1", "of", "4", "0.5", "1"] and four.split()[:5] == ["4", "of", "4", "0.5", "1"]
    assert picked.startswith("picked: --min-agree ") and paper.startswith("the paper has no quorum for minimaze")
    assert len((run / "tune.csv").read_text().splitlines()) == 3
    consensus = read_agent(run).consensus
    assert consensus is not None and picked.startswith(f"picked: --min-agree {consensus.min_agree} --alpha 0.5")


def test_tune_shows_progress(run: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "MIN_RATE_SECONDS", 0.0)
    lines = command("tune", run, "--quorums", "1,4", "--alphas", "0.5,1", "--episodes", "3").err.splitlines()
    assert len(lines) == 12 and all(line.startswith(f"{n}/12 episodes") for n, line in enumerate(lines, 1))
    assert all("episodes/s" in line for line in lines) and all("return" in line for line in lines[2::3])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--quorums", "0"], "--quorums has 0; accepted: 1 to 4"),
        (["--quorums", "5"], "--quorums has 5; accepted: 1 to 4"),
        (["--quorums", "few"], "--quorums is 'few'; accepted: whole numbers, as 1,2,3"),
        (["--alphas", "2"], "--alphas has 2.0; accepted: numbers from 0.001 to 1"),
        (["--temperatures", "-1"], "--temperatures is -1.0; accepted: 0, or 0.001 to 100"),
        (["--quorums", "3,1,3"], "--quorums has 3 twice; accepted: distinct values"),
        (["--alphas", "0.5,0.5"], "--alphas has 0.5 twice; accepted: distinct values"),
        (["--temperatures", "0,-0.0"], "--temperatures has 0 twice; accepted: distinct values"),
        (["--episodes", "0"], "--episodes is 0; accepted: 1 to 10000000"),
        (["--seed", "-1"], "--seed is -1; accepted: 0 to 2147483647"),
    ],
)
def test_invalid_tune_arguments_are_refused(
    words: list[str], message: str, run: Path, refused: Callable[..., str]
) -> None:
    assert message in refused("tune", run, *words)


def test_tune_refuses_a_run_without_left_out_levels(small: Any, refused: Callable[..., str], tmp_path: Path) -> None:
    population(small, tmp_path / "all", member_levels="all")
    message = "has no training level that two members never saw; accepted: a population trained with --member-levels"
    assert message in refused("tune", tmp_path / "all")
    small.train(tmp_path / "ppo", 1)
    message = "does not vote; accepted: --levels that it has not trained on, or an ensemble with --vote leader or maj"
    assert message in refused("tune", tmp_path / "ppo", "--temperatures", "0,1")


def test_tune_chooses_the_temperature_of_a_single_policy_on_given_levels(
    small: Any, command: Callable[..., Any], refused: Callable[..., str], tmp_path: Path
) -> None:
    small.train(tmp_path / "ppo", 1)
    words = ("tune", tmp_path / "ppo", "--levels", "900:6", "--episodes", "6")
    outcome = command(*words, "--temperatures", "0,0.5,1")
    first, _, *rows, picked = outcome.out.splitlines()
    assert (outcome.status, first) == (0, "6 episodes on levels 900:6, which no policy trained on")
    assert [row.split()[:3] for row in rows] == [["-", "-", "0"], ["-", "-", "0.5"], ["-", "-", "1"]]
    best = max(rows, key=lambda row: (float(row.split()[3]), float(row.split()[2])))
    assert picked == f"picked: --temperature {best.split()[2]}"
    assert read_agent(tmp_path / "ppo").temperature == float(best.split()[2])
    played = command("evaluate", tmp_path / "ppo", "--levels", "900:6", "--episodes", "6").out.splitlines()[1]
    assert played.split()[-5:] == best.split()[3:-1]  # return, interval and solved rate are those of the trial
    assert "does not vote; accepted: --temperatures, such as 0,0.25,0.5,1" in refused(*words)
    assert "--quorums is given but" in refused(*words, "--temperatures", "1", "--quorums", "2")
    words = ("tune", tmp_path / "ppo", "--temperatures", "0,1", "--levels")
    assert "--levels 0:4 are training levels; accepted: levels that no policy trained on" in refused(*words, "0:4")


def test_tune_normalises_the_temperature_minus_zero(small: Any, command: Callable[..., Any], tmp_path: Path) -> None:
    small.train(tmp_path / "ppo", 1)
    words = ("tune", tmp_path / "ppo", "--levels", "900:1", "--episodes", "1", "--temperatures", "-0.0")
    assert command(*words).out.splitlines()[-1] == "picked: --temperature 0"
    assert '"temperature": 0.0,' in (tmp_path / "ppo" / "agent.json").read_text()


def test_tune_says_that_the_first_of_several_members_without_a_vote_plays(
    small: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    small.train(tmp_path / "ppo", 1, members=3)
    words = ("--levels", "900:1", "--episodes", "1", "--temperatures", "1")
    heading, _, row, _ = command("tune", tmp_path / "ppo", *words).out.splitlines()
    assert heading.startswith("1 episode of member0, the first of 3 members that do not vote, on levels 900:1, which")
    alone = command("evaluate", tmp_path / "ppo", *words[:4], "--learner", "member0").out.splitlines()[1]
    assert row.split()[3:-1] == alone.split()[-5:]
    assert (tmp_path / "ppo" / "tune.csv").read_text().splitlines()[1].split(",")[1] == "1"


def test_tune_of_damaged_checkpoints_prints_only_the_error(
    small: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    small.train(tmp_path / "ppo", 1)
    for file in (tmp_path / "ppo" / "checkpoints").rglob("*.safetensors"):
        file.write_bytes(b"damaged")
    outcome = command("tune", tmp_path / "ppo", "--levels", "900:1", "--episodes", "1", "--temperatures", "1")
    assert (outcome.status, outcome.out) == (2, "") and "is not a complete expgen checkpoint" in outcome.err


def test_each_agent_file_has_its_own_results(small: Any, command: Callable[..., Any], tmp_path: Path) -> None:
    small.train(tmp_path / "run", 1)
    policy = {"path": "run/checkpoints/member0"}
    for name in ("a", "b", "agent"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"members": [policy]}))
        words = ("--levels", "900:1", "--episodes", "1", "--temperatures", "0.5")
        assert command("tune", tmp_path / f"{name}.json", *words).status == 0
        assert read_agent(tmp_path / f"{name}.json").temperature == 0.5
    names = sorted(file.name for file in tmp_path.glob("*.csv"))
    assert names == ["a.tune.csv", "b.tune.csv", "tune.csv"]


def test_tune_refuses_shipped_agents_by_name_and_folder(refused: Callable[..., str], tmp_path: Path) -> None:
    folder = bundled_agents()["minimaze/expgen"].folder.path
    for run in ("minimaze/expgen", folder):
        line = refused("tune", run, "--episodes", "1")
        assert f"{run}, a shipped agent; accepted: a copy of {folder}, a run folder or an agent.json" in line
    assert "is no run folder" in refused("tune", tmp_path / "nowhere")


def test_tuned_agent_plays_with_the_weights_that_were_tuned(
    small: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    small.train(tmp_path / "run", 2, average=0.9)
    words = ("--levels", "900:4", "--episodes", "4", "--temperatures", "0,1")
    for weights in ("average", "live"):
        assert command("tune", tmp_path / "run", *words, "--weights", weights).status == 0
        assert read_agent(tmp_path / "run").weights == weights


def test_tune_plays_a_whole_ensemble_on_given_levels(run: Path) -> None:
    agent = read_agent(run)
    request = TuneRequest("900:4", quorums=(2,), alphas=(0.5,), temperatures=(0.5, 1.0), episodes=4)
    colder, usual = tune(agent, request)
    assert (colder.settings, usual.settings) == ((2, 0.5, 0.5), (2, 0.5, 1.0))
    expected = expgen.evaluate(expgen.load_agent(run, min_agree=2), "minimaze", 4, levels=range(900, 904))
    assert usual.evaluation == expected and usual.counts is not None


def test_tune_on_all_unseen_levels_plays_others_than_an_evaluation_with_the_same_seed(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = read_agent(run)
    seeds: list[int] = []  # of the noise of every agent that plays
    original = ConsensusAgent.__init__

    def recorded(self: ConsensusAgent, members: Any, explorers: Any, spec: Any, config: Any, seed: int) -> None:
        original(self, members, explorers, spec, config, seed)
        seeds.append(seed)

    monkeypatch.setattr(ConsensusAgent, "__init__", recorded)
    tuned = [
        {episode.level for episode in one.evaluation.episodes}
        for one in tune(agent, TuneRequest("all", quorums=(1, 2), alphas=(0.5,), episodes=24))
    ]
    played: set[int] = set()
    request = EvaluationRequest(split="test", episodes=24)
    list(score_all(agent, request, lambda episode: played.add(episode.level)))
    assert tuned[0] == tuned[1] and len(tuned[0]) == len(played) == 24
    assert not tuned[0] & played  # by chance they share a level in one of 4 million cases
    assert seeds[0] == seeds[1] != seeds[2] == request.seed


def test_tune_has_levels_and_noise_of_its_own_only_on_an_open_set() -> None:
    open_set = LevelSet(None, excluded=range(200))
    derived = [play_seed(seed, open_set) for seed in range(1000)]
    assert len({*derived, *range(1000)}) == 2000 and all(0 <= seed <= LAST_SEED for seed in derived)
    assert play_seed(7, LevelSet.parse("900:6")) == 7  # the levels are given
    levels = [set(open_set.draw(100_000, np.random.default_rng(seed)).tolist()) for seed in (0, derived[0])]
    assert len(levels[0] & levels[1]) < 20  # by chance 100,000² / 2³¹ = 4.7


def test_tune_chooses_the_temperature_of_a_mean(run: Path) -> None:
    agent = read_agent(run)
    assert agent.consensus is not None
    mean = replace(agent, consensus=replace(agent.consensus, vote="mean"))
    trials = list(tune(mean, TuneRequest("900:4", temperatures=(0.0, 1.0), episodes=4)))
    assert [(*one.settings, one.counts) for one in trials] == [(None, None, 0, None), (None, None, 1, None)]
    tuned = tuned_agent(mean, trials[0])
    assert (tuned.temperature, tuned.consensus, tuned.tuned) == (0, mean.consensus, ())
    with pytest.raises(InputError, match="does not vote; accepted: --levels that it has not trained on"):
        tuning_levels(mean)


def test_tune_refuses_bad_device_and_unwritable_file_before_playing(run: Path, command: Callable[..., Any]) -> None:
    wrong_device = command("tune", run, "--device", "cuda:x")
    assert (wrong_device.status, wrong_device.out) == (2, "") and "--device is 'cuda:x'" in wrong_device.err
    (run / "tune.csv").unlink(missing_ok=True)
    (run / "tune.csv").mkdir()
    try:
        unwritable = command("tune", run, "--episodes", "8")
    finally:
        (run / "tune.csv").rmdir()
    assert (unwritable.status, unwritable.out) == (2, "") and "cannot write" in unwritable.err
