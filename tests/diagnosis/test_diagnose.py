"""expgen diagnose: a small population from Python and the command line; rejected input."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import expgen
from expgen.agents.consensus import ConsensusAgent
from expgen.diagnosis.measure import NEAR, VoteRecorder
from expgen.evaluation.evaluate import play_episodes, result_of


@pytest.fixture(scope="module")
def population(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "population"
    small.train(run, 2, algo="expgen", members=3, **small.explorer)
    return run


@pytest.fixture(scope="module")
def members(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "members"
    small.train(run, 2, members=2)
    return run


def test_vote_recorder_equals_double_loop() -> None:
    agent = expgen.load_agent("minimaze/expgen")
    assert isinstance(agent, ConsensusAgent)
    recorder = VoteRecorder(agent)
    env = expgen.make_env("minimaze", levels=range(1000, 1020), num_envs=4)
    work: Iterator[None] = play_episodes(recorder, env, 12)
    shares: dict[int, list[tuple[int, float]]] = {number: [] for number in range(12)}
    length = dict.fromkeys(range(12), 0)
    original = recorder.act

    def act(obs: np.ndarray, first: np.ndarray, episode: np.ndarray) -> np.ndarray:
        action = original(obs, first, episode)
        assert agent.decision is not None
        for i, number in enumerate(episode.tolist()):
            votes = agent.decision.votes[:, i].tolist()
            if number >= 0 and votes[0] >= 0:  # in minimaze actions 1 to 4 are classes of their own, 0 agrees with none
                same = sum(vote == votes[0] for vote in votes) if votes[0] else 1
                shares[number].append((length[number], same / len(votes)))
            length[number] = length.get(number, 0) + 1
        return action

    recorder.act = act  # type: ignore[method-assign]
    played = result_of(work)  # type: ignore[arg-type]
    near, far = [], []
    for number, episode in enumerate(played):
        for step, share in shares[number]:
            (near if episode.solved and episode.length - step <= NEAR else far).append(share)
    found = recorder.votes(played)
    assert found.near == pytest.approx(np.mean(near)) and found.far == pytest.approx(np.mean(far))
    assert found.counts.votes == len(near) + len(far) and (found.members, found.quorum) == (5, agent.quorum)


def test_diagnose_population_from_python(population: Path, tmp_path: Path) -> None:
    diagnosis = expgen.diagnose(population, episodes=6, envs=3)
    assert [(play.player, play.split) for play in diagnosis.measured.plays] == [
        (player, split) for split in ("train", "test") for player in ("member", "agent", "explorer", "random")
    ]
    assert all(len(play.evaluation.episodes) == 6 for play in diagnosis.measured.plays)
    assert diagnosis.measured.votes is not None and diagnosis.measured.votes.members == 3
    assert str(diagnosis).startswith("verdict: ") and diagnosis.findings[0].about == "verdict"
    diagnosis.save(str(tmp_path / "figure.svg"))  # as docs/diagnose.md has it
    text = (tmp_path / "figure.svg").read_text()
    assert "gap" in text and "agreement" in text and "coverage" in text


def test_diagnose_members_without_explorer_counts_votes(members: Path) -> None:
    measured = expgen.diagnose(members, episodes=3).measured
    assert [play.player for play in measured.plays] == ["member", "random"] * 2
    assert measured.votes is not None and measured.votes.counts.votes == measured.votes.counts.steps
    alone = expgen.evaluate(expgen.load_agent(members), expgen.make_env("minimaze", levels=20, num_envs=3), episodes=3)
    train = measured.play("member", "train")
    assert train is not None and train.evaluation.episodes == alone.episodes  # the first member plays


def test_diagnose_explorers_without_members_measures_coverage(population: Path) -> None:
    agent = population / "explorers.json"
    agent.write_text('{"members": [], "explorers": [{"path": "checkpoints/explorer"}]}')
    diagnosis = expgen.diagnose(agent, episodes=3)
    assert [play.player for play in diagnosis.measured.plays] == ["agent", "explorer", "random"] * 2
    assert diagnosis.measured.votes is None and "explorer only" in diagnosis.findings[0].what
    assert [part.about for part in diagnosis.findings].count("coverage") == 1


def test_diagnose_knows_the_end_value_of_the_explorers() -> None:
    assert expgen.diagnose("minimaze/best", episodes=1).measured.end_value == 1
    assert expgen.diagnose("minimaze/maxent", episodes=1).measured.end_value == 0


def test_diagnose_shipped_agent_from_command_line(command: Callable[..., Any], tmp_path: Path) -> None:
    figure = tmp_path / "new" / "maze.png"
    outcome = command("diagnose", "minimaze/maxent", "--episodes", 4, "--out", figure)
    assert outcome.status == 0, outcome
    lines = outcome.out.splitlines()
    assert lines[0].startswith("verdict: ") and lines[-1] == f"wrote {figure}"
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_diagnose_names_default_figure_after_the_game(
    members: Path, command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("diagnose", members, "--episodes", 1).out.splitlines()[-1] == "wrote minimaze-diagnosis.png"
    assert (tmp_path / "minimaze-diagnosis.png").exists()


BAD_INPUT = {
    "no arguments": ([], "the following arguments are required: RUN_OR_AGENT"),
    "no such run": (["nowhere"], "nowhere is no run folder"),
    "empty folder": (["."], "is no run folder"),
    "two runs": (["a", "b"], "unrecognized arguments: b"),
    "no episodes": (["RUN", "--episodes", "0"], "--episodes is 0; accepted: 1 to"),
    "negative episodes": (["RUN", "--episodes", "-3"], "--episodes is -3; accepted: 1 to"),
    "fractional episodes": (["RUN", "--episodes", "0.5"], "--episodes is '0.5'; accepted: a whole number"),
    "non-numeric episodes": (["RUN", "--episodes", "many"], "--episodes is 'many'; accepted: a whole number"),
    "missing value": (["RUN", "--episodes"], "--episodes: expected one argument"),
    "too many episodes": (["RUN", "--episodes", "1e9"], "--episodes is 1000000000; accepted: 1 to"),
    "no envs": (["RUN", "--envs", "0"], "--envs is 0; accepted: 1 to"),
    "too many envs": (["RUN", "--envs", "1M"], "--envs is 1000000; accepted: 1 to"),
    "negative seed": (["RUN", "--seed", "-1"], "--seed is -1; accepted: 0 to"),
    "non-numeric seed": (["RUN", "--seed", "x"], "--seed is 'x'; accepted: a whole number"),
    "device": (["RUN", "--device", "tpu"], "--device is 'tpu'; accepted: auto, cpu, cuda, cuda:N"),
    "no such GPU": (["RUN", "--device", "cuda:99"], "--device is 'cuda:99' but this machine has"),
    "figure as pdf": (["RUN", "--out", "x.pdf"], "--out is 'x.pdf'; accepted: a file that ends in .png or .svg"),
    "figure without suffix": (["RUN", "--out", "x"], "--out is 'x'; accepted: a file that ends in .png or .svg"),
    "figure at a URL": (["RUN", "--out", "s3://b/x.png"], "--out is 's3://b/x.png'; accepted: a file or folder of"),
    "figure in a file": (["RUN", "--out", "RUN/config.json/x.png"], "cannot write"),
    "unknown flag": (["RUN", "--quick"], "unrecognized arguments: --quick"),
    "abbreviated flag": (["RUN", "--epi", "3"], "unrecognized arguments: --epi 3"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_diagnose_rejects_bad_input_in_one_line(
    case: str, members: Path, refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words, line = BAD_INPUT[case]
    assert line in refused("diagnose", *(word.replace("RUN", str(members)) for word in words))
    assert list(tmp_path.iterdir()) == []


def test_diagnose_rejects_run_without_checkpoint(
    small: Any, members: Path, refused: Callable[..., str], tmp_path: Path
) -> None:
    for name in ("config.json", "agent.json"):
        (tmp_path / name).write_bytes((members / name).read_bytes())
    assert "has no checkpoint yet" in refused("diagnose", tmp_path)
