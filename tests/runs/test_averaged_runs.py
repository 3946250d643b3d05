"""Runs with averaged weights: both sets are scored, and either can be played, tuned and shipped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import expgen
from expgen.agents.build import build_agent
from expgen.agents.consensus import ConsensusAgent
from expgen.agents.policies import read_card, with_weights
from expgen.cli.main import main
from expgen.errors import InputError
from expgen.evaluation.scores import agent_name, read_scores
from expgen.networks.actor_critic import Policy
from expgen.networks.state import under_prefix
from expgen.runs.agent_files import read_agent
from expgen.runs.bundle import bundle
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import make_config
from expgen.runs.push import push
from expgen.runs.result import curve_rows
from expgen.runs.shipped import bundled_agents, find_agent
from expgen.runs.tune import tune
from expgen.runs.tune_request import TuneRequest
from expgen.training.metrics import MetricsFile
from expgen.watch.play import PlayRequest, play_agent
from tests.policies import load_policy, load_run, newest_checkpoint


@pytest.fixture(scope="module")
def run(small: Any, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A population of two members with averaged weights and an explorer without, scored at the end."""
    settings = {"algo": "expgen", "members": 2, "member_levels": "bootstrap", "average": 0.9, "eval_every": 10**9}
    folder = tmp_path_factory.mktemp("runs") / "population"
    small.train(folder, 3, **{**settings, **small.explorer, "features": 16})
    return RunFolder(folder)


@pytest.fixture(scope="module")
def plain(small: Any, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run without averages."""
    folder = tmp_path_factory.mktemp("runs") / "plain"
    small.train(folder, 1)
    return RunFolder(folder)


def has_weights(policy: Policy, folder: RunFolder, learner: str, prefix: str) -> bool:
    """Whether `policy` has exactly the weights that the checkpoint has under `prefix`."""
    kept = under_prefix(prefix, newest_checkpoint(folder, learner).tensors)
    own = policy.state_dict()
    return own.keys() == kept.keys() and all(torch.equal(own[name], kept[name]) for name in own)


def test_average_is_set_for_members_and_explorer_and_zero_keeps_the_digest() -> None:
    config = make_config(algo="expgen", average=0.95, explorer_average=0.99)
    assert config.explorer is not None and (config.average, config.explorer.average) == (0.95, 0.99)
    assert TrainConfig.from_json(config.to_json()) == config
    digests = {
        make_config(algo="expgen", **rates).digest() for rates in ({}, {"average": 0.0}, {"explorer_average": 0})
    }
    assert len(digests) == 1 and config.digest() not in digests
    assert make_config(algo="expgen", explorer_average=0.9).digest() not in digests


@pytest.mark.parametrize("rate", [1.0, -0.1])
def test_average_out_of_range_is_refused(rate: float) -> None:
    with pytest.raises(InputError, match=rf"^--explorer-average is {rate}; accepted: 0 to 0\.9999$"):
        make_config(algo="expgen", explorer_average=rate)


def test_live_and_averaged_weights_have_separate_score_rows(run: RunFolder, small: Any) -> None:
    agents = [agent_name(row) for row in read_scores(run.scores_file) if row.split == "test"]
    assert sorted(agents) == sorted(
        [
            *("member0", "member0 weights=average", "member1", "member1 weights=average", "explorer"),
            *("expgen members=2", "expgen fallback=random members=2", "expgen weights=average members=2"),
        ]
    )
    rows = {row["learner"]: row for row in MetricsFile(run.metrics_file).rows() if row["test_return"]}
    assert not rows["explorer"]["average_test_return"]
    for score in read_scores(run.scores_file):
        if score.agent in rows:
            column = f"{'average_' if score.settings else ''}{score.split}_return"
            assert float(rows[score.agent][column]) == pytest.approx(score.mean_return, rel=1e-5)
    drawn = {(agent_name(row), row.split) for _, row in curve_rows(run)}
    assert ("member1 weights=average", "test") in drawn and len(drawn) == 2 * 5


def test_load_agent_uses_the_requested_weights_and_live_by_default(run: RunFolder) -> None:
    for weights, prefix in ((None, "policy"), ("live", "policy"), ("average", "average")):
        asked: dict[str, Any] = {} if weights is None else {"weights": weights}
        assert has_weights(load_policy(run, "member1", **asked)[0], run, "member1", prefix)
        agent = expgen.load_agent(run.path, **asked)
        assert isinstance(agent, ConsensusAgent)
        assert [
            has_weights(member, run, f"member{index}", prefix) for index, member in enumerate(agent.ensemble.members)
        ] == [True, True]
        explorer = load_policy(run, "explorer", **asked)[0]  # without an average: always the live weights
        assert has_weights(explorer, run, "explorer", "policy")
    live, averaged = (load_policy(run, "member1", weights=weights)[0].state_dict() for weights in ("live", "average"))  # type: ignore[arg-type]
    assert any(not torch.equal(live[name], averaged[name]) for name in live)
    assert load_run(run, weights="average").settings == {"weights": "average", "members": 2}
    assert load_run(run, "member1", weights="average").settings == {"weights": "average"}


def test_evaluate_and_play_record_the_weights(run: RunFolder, tmp_path: Path) -> None:
    scores = tmp_path / "scores.csv"
    for weights in ("live", "average"):
        for learner in ([], ["--learner", "member0"]):
            words = ["--episodes", "4", "--scores", str(scores), "--weights", weights, *learner]
            assert main(["evaluate", str(run.path), *words]) == 0
    assert [agent_name(row) for row in read_scores(scores)] == [
        *("expgen members=2", "member0", "expgen weights=average members=2", "member0 weights=average")
    ]
    recording = play_agent(read_agent(run.path), PlayRequest(level=1000, learner="member0", weights="average"))
    assert recording.agent == "ppo member0 weights=average"


def test_missing_averaged_weights_are_refused_in_one_line(
    run: RunFolder, plain: RunFolder, refused: Callable[..., str], tmp_path: Path
) -> None:
    accepted = "accepted: live, or a run trained with --average"
    for words in (["evaluate", plain.path, "--episodes", "1"], ["play", plain.path, "--out", tmp_path / "a.html"]):
        line = refused(*words, "--weights", "average")
        assert line == f"expgen: --weights is average but {plain.path} has no averaged weights of member0; {accepted}"
    line = refused("evaluate", run.path, "--learner", "each", "--weights", "average")  # before anything is played
    assert line == f"expgen: --weights is average but {run.path} has no averaged weights of explorer; {accepted}"
    line = refused("evaluate", run.path, "--weights", "mean")
    assert line == "expgen: --weights is 'mean'; accepted: live, average"
    line = refused("play", run.path, "--learner", "random", "--weights", "average")
    assert line == "expgen: --weights is average but --learner random has no weights; accepted: live"
    with pytest.raises(InputError, match=r"--weights is average but .* has no averaged weights of member0"):
        bundle(plain.path, "expgen train", "a laptop", 1, where=tmp_path, weights="average")


def test_policies_without_an_average_play_where_agent_json_names_averaged_weights(
    small: Any, command: Callable[..., Any], refused: Callable[..., str], tmp_path: Path
) -> None:
    """Its explorer alone has an average, which agent.json then names; nobody asked the members for theirs."""
    run = tmp_path / "run"
    settings = {"algo": "expgen", "members": 2, "vote": "mean", "explorer_average": 0.9, **small.explorer}
    small.train(run, 1, **settings)
    assert read_agent(run).weights == "average"
    words = ("--episodes", "2", "--scores", tmp_path / "scores.csv")
    for more in ([], ["--vote", "leader"], ["--learner", "each"]):
        assert command("evaluate", run, *words, *more).status == 0
    assert [agent_name(row) for row in read_scores(tmp_path / "scores.csv")] == [
        *("expgen members=2 vote=mean", "expgen weights=average vote=leader members=2"),
        *("member0", "member1", "explorer weights=average"),
    ]
    assert command("play", run, "--learner", "member0", "--out", tmp_path / "a.html").status == 0
    assert command("diagnose", run, "--episodes", "2", "--out", tmp_path / "a.png").status == 0
    assert has_weights(load_policy(RunFolder(run), "member0")[0], RunFolder(run), "member0", "policy")
    for asked in (["evaluate", *words], ["play", "--out", tmp_path / "b.html"]):
        line = refused(asked[0], run, *asked[1:], "--learner", "member0", "--weights", "average")
        assert line.startswith(f"expgen: --weights is average but {run} has no averaged weights of member0; ")


def test_tune_uses_the_requested_weights(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[Any] = []
    original = ConsensusAgent.__init__

    def kept(self: ConsensusAgent, members: Any, *more: Any) -> None:
        played.extend(members)
        original(self, members, *more)

    monkeypatch.setattr(ConsensusAgent, "__init__", kept)
    agent = with_weights(read_agent(run.path), "average")
    list(tune(agent, TuneRequest(quorums=(1,), alphas=(0.5,), episodes=2)))
    assert [has_weights(played[index], run, f"member{index}", "average") for index in (0, 1)] == [True, True]


def test_bundle_of_averaged_weights_loads_and_plays(run: RunFolder, tmp_path: Path) -> None:
    bundle(run.path, "expgen train", "a laptop", 2, where=tmp_path, weights="average")
    agents = bundled_agents(tmp_path)
    assert agents["minimaze/expgen"].trained["averaged"] == ["member0", "member1"]
    shipped = find_agent("minimaze/expgen", tmp_path).folder
    for learner, prefix in (("member0", "average"), ("member1", "average"), ("explorer", "policy")):
        kept = under_prefix(prefix, newest_checkpoint(run, learner).tensors)
        checkpoint = newest_checkpoint(shipped, learner)
        assert checkpoint.is_weights_alone
        ours = load_policy(shipped, learner)[0].state_dict()
        assert all(torch.equal(ours[name], kept[name].half().float()) for name in kept)
    agent = load_run(shipped).agent
    env = expgen.make_env("minimaze", levels=range(1000, 1004), num_envs=2)
    assert len(expgen.evaluate(agent, env, episodes=2).episodes) == 2
    assert agents["minimaze/ppo"].scores["test"].episodes == 2
    settings = {name: agent.scores["test"].settings.split() for name, agent in agents.items()}
    assert {name for name, words in settings.items() if "weights=average" in words} == {
        "minimaze/ppo",
        "minimaze/expgen",
    }


def test_copies_of_a_bundle_still_say_that_its_weights_are_averages(run: RunFolder, tmp_path: Path) -> None:
    bundle(run.path, "expgen train", "a laptop", 1, where=tmp_path / "one", weights="average")
    shipped = find_agent("minimaze/expgen", tmp_path / "one")
    push(shipped.folder.path, tmp_path / "pushed")
    bundle(shipped.folder.path, "expgen train", "a laptop", 1, where=tmp_path / "two", commit="abc", minutes=1)
    for copied in (tmp_path / "pushed", tmp_path / "two" / "minimaze-expgen"):
        assert read_card(copied / "card.json")["trained"]["averaged"] == ["member0", "member1"]
        assert build_agent(read_agent(copied)).settings["weights"] == "average"
        assert "weights" not in build_agent(read_agent(copied), "explorer").settings


def test_bundle_of_live_weights_does_not_list_averages(run: RunFolder, tmp_path: Path) -> None:
    bundle(run.path, "expgen train", "a laptop", 1, where=tmp_path)
    shipped = find_agent("minimaze/expgen", tmp_path).folder
    assert "averaged" not in read_card(shipped.card_file)["trained"]
    kept = under_prefix("policy", newest_checkpoint(run, "member0").tensors)
    ours = load_policy(shipped, "member0")[0].state_dict()
    assert all(torch.equal(ours[name], kept[name].half().float()) for name in kept)
