"""expgen train: flags, banner, resume commands and bad input."""

import dataclasses
import json
import os
import shlex
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from expgen.agents.consensus import ConsensusConfig
from expgen.algorithms.recipes import RECIPES
from expgen.cli.summary import run_lines
from expgen.envs.library import is_installed
from expgen.plugins import Plugins
from expgen.runs import stop
from expgen.runs.agent_files import read_agent
from expgen.runs.config import default_config
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import RunRequest, open_run
from expgen.runs.stop import StopSignals
from expgen.settings import flag_of, nested_configs
from tests.children import PATIENCE, until
from tests.runs.rows import metrics


def test_train_help_names_the_algorithm(command: Callable[..., Any]) -> None:
    text = " ".join(command("train", "--help").out.split())
    assert "Settings and defaults are those of --algo ppo" in text and "expgen train --algo A --help all" in text


@pytest.mark.parametrize(
    "words, gamma, source",
    [
        (("--algo", "maxent"), 0.9, "--algo maxent in the paper; with a GAME,"),
        (("heist", "--algo", "maxent"), 0.5, "--algo maxent on heist."),
        (("jumper,maze", "--algo", "maxent"), 0.99, "--algo maxent on jumper."),
        (("jumper", "--preset", "best"), 0.99, "--algo expgen-idaac+mixed on jumper with --preset best."),
    ],
)
def test_train_help_shows_the_defaults_of_the_game(
    words: tuple[str, ...], gamma: float, source: str, command: Callable[..., Any]
) -> None:
    text = " ".join(command("train", *words, "--help", "all").out.split())
    assert f"--gamma X discount γ (default {gamma})" in text and f"Settings and defaults are those of {source}" in text


def test_train_help_shows_the_quorum_of_the_game(command: Callable[..., Any]) -> None:
    for words, quorum in (((), 0), (("maze",), 6), (("heist",), 8)):
        text = " ".join(command("train", *words, "--algo", "expgen", "--help", "all").out.split())
        assert f"agree on an action; 0: more than half (default {quorum})" in text


def test_turn_of_explorers_without_members_is_a_flag(
    command: Callable[..., Any], refused: Callable[..., str], tmp_path: Path
) -> None:
    words = ("train", "--algo", "openend", "--preset", "smoke", "--run", tmp_path / "run", "--eval-every", "0")
    assert command(*words, "--turn", "20").status == 0
    assert read_agent(tmp_path / "run").consensus == ConsensusConfig(turn=20)
    assert "--once" in refused(*words, "--once")


@pytest.mark.parametrize("algo", RECIPES)
def test_train_help_is_short(algo: str, command: Callable[..., Any]) -> None:
    page = command("train", "--algo", algo, "--help").out
    assert len(page.splitlines()) <= 50 and "--steps" in page and "--preset" in page and "--help all" in page
    assert "--clip" not in page and "--engine" not in page and "--test-levels" not in page


def test_help_accepts_only_all(command: Callable[..., Any], refused: Callable[..., str]) -> None:
    assert refused("train", "--help", "everything") == "expgen: --help is 'everything'; accepted: all"
    assert command("status", "--help", "all").out == command("status", "--help").out


def test_banner_shows_run_learners_and_device(small: Any, command: Callable[..., Any], tmp_path: Path) -> None:
    words = [*small.flags(tmp_path, 2, algo="expgen", members=2, **small.explorer), "--seed", "3"]
    lines = command(*words).err.splitlines()
    assert lines[0] == f"{tmp_path}: a new run"
    learners = "2 members of 256 steps and 1 explorer of 128 steps"
    assert lines[1] == f"  expgen on minimaze: {learners}; levels 20, seed 3"
    assert lines[2] == "on cpu with 1 cores, one process; the remaining time is shown after the first updates"
    assert "members 256: " in lines[-1].replace("512", "256") and " | explorer 128: " in lines[-1]
    again = command("train", "--resume", "--run", tmp_path, "--device", "cpu").err.splitlines()
    assert again[0] == f"{tmp_path}: resumes after 640 of 640 steps"


def test_banner_counts_processes_of_unfinished_learners(
    small: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    small.train(tmp_path, 1, members=2)
    again = command("train", "--resume", "--run", tmp_path, "--members", 3, "--processes", 3, "--device", "cpu")
    assert again.status == 0 and ", one process; " in again.err


def test_banner_of_a_stopped_run_shows_the_time_left(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 4, should_stop=lambda: bool(list(tmp_path.glob("metrics.csv"))))
    metrics = tmp_path / "metrics.csv"
    metrics.write_text("learner,env_steps,seconds\nmember0,128,14400\n")  # four hours for a quarter of the steps
    line, _ = run_lines(open_run(RunRequest(run=tmp_path, resume=True)), tmp_path)
    assert line == f"{tmp_path}: resumes after 128 of 512 steps, about 12.0 h left at the speed so far"


def test_banner_of_a_killed_run_shows_the_steps_of_its_checkpoint(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 4)
    for newer in sorted(RunFolder(tmp_path).checkpoints_of("member0").glob("*"))[1:]:  # not written yet when killed
        newer.unlink()
    line, _ = run_lines(open_run(RunRequest(run=tmp_path, resume=True)), tmp_path)
    assert line.startswith(f"{tmp_path}: resumes after 384 of 512 steps")


@pytest.mark.parametrize("algo", RECIPES)
def test_help_lists_every_setting_of_the_algorithm(algo: str, command: Callable[..., Any]) -> None:
    outcome = command("train", "--algo", algo, "--help", "all")
    assert outcome.status == 0
    words = set(outcome.out.replace(",", " ").split())
    config = default_config(algo)
    for prefix, part in (("", config), ("explorer_", config.explorer)):
        for inside in (part, *nested_configs(part).values()) if part else ():
            for field in dataclasses.fields(inside):
                value = getattr(inside, field.name)
                if value is not None and not dataclasses.is_dataclass(value) and field.name != "options":
                    assert flag_of(prefix + field.name) in words
    assert {"GAME", "--env", "--option", "--preset", "--run", "--resume", "--device", "--processes", algo} <= words


def test_flags_and_python_train_the_same_run(
    small: Any, command: Callable[..., Any], equal: Callable[..., bool], tmp_path: Path
) -> None:
    changes = {"gamma": 0.9, "normalize_reward": False, "eval_every": 10**9}
    flags = {name: value for name, value in changes.items() if name != "normalize_reward"}
    small.train(tmp_path / "python", options={"texture": 0}, **changes)
    words = small.flags(tmp_path / "flags", **flags)
    outcome = command(*words, "--no-normalize-reward", "--option", "texture=0")
    assert outcome.status == 0 and outcome.out.startswith(f"done: {tmp_path / 'flags'}  (scores in scores.csv")
    assert outcome.err.splitlines()[-1].startswith("512/512 steps")
    assert equal(small.state(tmp_path / "python"), small.state(tmp_path / "flags"))
    assert RunFolder(tmp_path / "python").read_config() == RunFolder(tmp_path / "flags").read_config()


@pytest.fixture
def without_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what other tests of this process have imported, which the command would name."""
    monkeypatch.setattr("expgen.cli.train.known_plugins", lambda: Plugins({}, []))


@pytest.mark.usefixtures("without_plugins")
def test_run_without_scores_names_the_command_that_scores_it(
    small: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    why = "not scored, since --eval-every is 0: member0; score with: "
    assert command(*small.flags(run, 1)).out == f"done: {run}  (curves in metrics.csv)\n{why}expgen evaluate {run}\n"
    for split in ("test", "train"):
        assert command("evaluate", run, "--episodes", "3", "--split", split).status == 0
    done, _, scores = command(*small.flags(run, 1), "--resume").out.splitlines()
    assert done == f"done: {run}  (scores in scores.csv, curves in metrics.csv)"
    assert scores.startswith("member0 ") and scores.endswith(" 3")
    again = command(*small.flags(run, 1), "--resume", "--temperature", "0.5").out.splitlines()
    assert again == [done, *again[1:3], f"{why}expgen evaluate {run}"]


@pytest.mark.usefixtures("without_plugins")
def test_population_without_scores_of_its_policies_names_the_command(
    small: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    words = small.flags(tmp_path, 1, algo="expgen", members=2, **small.explorer)
    done, *_, last = command(*words).out.splitlines()
    assert done == f"done: {tmp_path}  (scores in scores.csv, curves in metrics.csv)"
    evaluate = f"expgen evaluate {tmp_path} --learner each"
    assert last == f"not scored, since --eval-every is 0: member0, member1, explorer; score with: {evaluate}"


def test_temperature_is_written_to_agent_json_and_kept_on_resume(
    small: Any, command: Callable[..., Any], refused: Callable[..., str], tmp_path: Path
) -> None:
    small.train(tmp_path / "plain", 1)
    assert read_agent(tmp_path / "plain").temperature == 1
    flags = [*small.flags(tmp_path / "run", 1), "--algo", "ppo", "--resume"]
    for given, stored in (["--temperature", "0.5"], 0.5), ([], 0.5), (["--temperature", "1"], 1):
        assert command(*flags, *given).status == 0
        assert read_agent(tmp_path / "run").temperature == stored
    assert "--temperature is -1.0; accepted: 0, or 0.001 to 100" in refused(*flags, "--temperature", "-1")


def test_resume_needs_only_the_folder(small: Any, command: Callable[..., Any], tmp_path: Path) -> None:
    small.train(tmp_path, 2, algo="ppo-gru")
    outcome = command("train", "--resume", "--run", tmp_path, "--steps", 3 * small.update_steps, "--device", "cpu")
    assert outcome.status == 0 and small.facts(tmp_path)["updates"] == 3


BAD_INPUT = {  # flags and the error line
    "game": (["mazes"], "GAME is 'mazes'; accepted: bigfish"),
    "no game": (["--env", "procgen"], "--env is 'procgen'; accepted with a GAME: bigfish"),
    "env": (["--env", "atari"], "--env is 'atari'; accepted: minimaze, procgen:GAME, gymnasium:ID, envpool:ID"),
    "gymnasium": (["--env", "gymnasium:NoSuch-v0"], "--env is 'gymnasium:NoSuch-v0'; accepted: the ID of"),
    "algo": (["--algo", "a3c"], "--algo is 'a3c'; accepted: ppo, ppo-gru"),
    "no algo": (["--algo"], "--algo: expected one argument; see expgen train --help"),
    "empty game": ([""], "GAME is ''; accepted: bigfish"),
    "comma after the last game": (["maze,"], "GAME is ''; accepted: bigfish"),
    "empty env": (["--env", ""], "--env is ''; accepted: minimaze"),
    "empty algo": (["--algo", ""], "--algo is ''; accepted: ppo, ppo-gru"),
    "empty run": (["--run", ""], "--run is ''; accepted: a folder or URL"),
    "preset": (["--preset", "huge"], "--preset is 'huge'; accepted: paper, best, laptop, smoke"),
    "flag": (["--stepz", "100"], "unrecognized arguments: --stepz"),
    "abbreviation": (["--step", "100"], "unrecognized arguments: --step"),
    "flag of other algorithms": (
        ["--algo", "maxent", "--death-cost", "1"],
        "unrecognized arguments: --death-cost; see expgen train --algo maxent --help all",
    ),
    "steps in words": (["--steps", "many"], "--steps is 'many'; accepted: a whole number"),
    "negative steps": (["--steps", "-5"], "--steps is -5; accepted: 1 to "),
    "few steps": (["--steps", "5"], "--steps is 5; accepted: 128 (one rollout) or more"),
    "no environments": (["--envs", "0"], "--envs is 0; accepted: 1 to "),
    "nan": (["--gamma", "nan"], "--gamma is nan"),
    "unbounded nan": (["--entropy-coef", "nan"], "--entropy-coef is nan; accepted: a finite number"),
    "infinite": (["--learning-rate", "inf"], "--learning-rate is inf; accepted: a finite number"),
    "negative rate": (["--learning-rate", "-1"], "--learning-rate is -1.0; accepted: 0 or more"),
    "gamma": (["--gamma", "1.01"], "--gamma is 1.01; accepted: 0 to 1"),
    "members": (["--members", "0"], "--members is 0; accepted: 1 to "),
    "seed": (["--seed", "-1"], "--seed is -1; accepted: 0 to 2147483647"),
    "all levels": (["--levels", "all"], "--levels is 'all'; accepted: a finite set"),
    "levels": (["--levels", "some"], "--levels is 'some'; accepted: COUNT, START:COUNT"),
    "no levels": (["--levels", "0"], "--levels is '0', which names 0 levels; accepted: at least one level"),
    "overlap": (["--levels", "200", "--test-levels", "100:5"], "--test-levels 100:5 overlap --levels 200"),
    "no such GPU": (["--device", "cuda:99"], "--device is 'cuda:99' but this machine has"),
    "device": (["--device", "abacus"], "--device is 'abacus'; accepted: auto, cpu, cuda, cuda:N"),
    "no processes": (["--processes", "0"], "--processes is '0'; accepted: auto, or 1 to 1024"),
    "processes in words": (["--processes", "many"], "--processes is 'many'; accepted: auto, or 1 to 1024"),
    "minibatches": (["--algo", "ppo-gru", "--minibatches", "9"], "--minibatches is 9; accepted: at most --envs (8)"),
    "memory": (["--algo", "ppo-gru", "--minibatch-order", "shuffled"], "--minibatch-order is shuffled but the policy"),
    "order": (["--minibatch-order", "sorted"], "--minibatch-order is 'sorted'; accepted: columns, shuffled"),
    "encoder": (["--env", "gymnasium:CartPole-v1", "--encoder", "impala"], "--encoder is impala but gymnasium:Cart"),
    "option without value": (["--option", "texture"], "--option is 'texture'; accepted: NAME=VALUE"),
    "unknown option": (["--option", "colour=3"], "option 'colour' is unknown; accepted: min_cells"),
    "option": (["--option", "texture=999"], "texture is 999; accepted: 0 to 255"),
    "option in words": (["--option", "texture=rough"], "texture is 'rough'; accepted: a value of type int"),
    "option nan": (["--option", "goal_reward=nan"], "goal_reward is nan; accepted: a finite number"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_one_line_and_makes_no_folder(
    case: str, small: Any, refused: Callable[..., str], tmp_path: Path
) -> None:
    words, message = BAD_INPUT[case]
    if "gymnasium" in " ".join(words):
        pytest.importorskip("gymnasium")
    line = refused(*small.flags(tmp_path / "run"), *words)
    assert message in line
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_missing_gpu_is_rejected(small: Any, refused: Callable[..., str], tmp_path: Path) -> None:
    line = refused(*small.flags(tmp_path / "run", device="cuda"))
    assert line == "expgen: --device is 'cuda' but this machine has 0 GPUs; accepted: cpu"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "already has a run; accepted: --resume, or another folder"),
        (["--resume", "--gamma", "0.5"], "--gamma is 0.5 but "),
        (["--resume", "--algo", "ppo-gru"], "--algo is ppo-gru but "),
        (["--resume", "--seed", "9"], "--seed is 9 but "),
        (["--resume", "--steps", "128"], "--steps is 128; accepted for this run: 256 or more"),
    ],
)
def test_different_run_in_the_same_folder_is_rejected(
    words: list[str], message: str, small: Any, refused: Callable[..., str], run: Path
) -> None:
    assert message in refused(*small.flags(run, 2), *words)


@pytest.fixture(scope="module")
def run(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "run"
    small.train(run, 2)
    return run


@pytest.mark.parametrize("text", ["{", "{}", json.dumps({"train": {"algo": "dqn"}, "spec": {}})])
def test_resume_rejects_a_damaged_config(text: str, refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    assert "accepted: " in refused("train", "--resume", "--run", tmp_path)


@pytest.mark.parametrize("content", [None, "libenv.so"])
def test_missing_procgen_library_is_one_line(
    content: str | None, process: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    if content:
        (tmp_path / content).write_text("not a library")
    words = ("train", "maze", "--preset", "smoke", "--run", tmp_path / "run")
    command = process(*words, env={**os.environ, "EXPGEN_PROCGEN": str(tmp_path)})
    out, err = command.communicate(timeout=60)
    missing = "assets" if content else "libenv.so"
    assert command.returncode == 2 and out == "" and not (tmp_path / "run").exists()
    assert err.splitlines() == [
        f"expgen: EXPGEN_PROCGEN has no {missing} ({tmp_path / missing}); accepted: a folder with libenv.so and assets/"
    ]


@pytest.mark.procgen
@pytest.mark.skipif(not is_installed(), reason="no ProcGen library")
def test_bad_procgen_options_are_rejected(small: Any, refused: Callable[..., str], tmp_path: Path) -> None:
    words = small.flags(tmp_path / "run")
    assert "distribution_mode is 'brutal'" in refused(*words, "maze", "--option", "distribution_mode=brutal")
    assert "option 'themes' is unknown" in refused(*words, "maze", "--option", "themes=1")
    assert "use_backgrounds is 3" in refused(*words, "maze", "--option", "use_backgrounds=3")


def test_second_signal_interrupts_and_handlers_are_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop, "SAME_SECONDS", 0.0)
    before = signal.getsignal(signal.SIGTERM)
    with StopSignals() as signals:
        assert not signals.arrived()
        os.kill(os.getpid(), signal.SIGTERM)
        assert signals.arrived() and signals.number == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


def test_resume_command_names_imported_modules(
    small: Any, process: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    (tmp_path / "my methods").mkdir()
    (tmp_path / "my methods" / "mine.py").write_text(OWN_ENCODER)
    words = small.flags(tmp_path / "run", 10**6, encoder="mine")
    stopped = process(*words, "--import", "my methods/mine.py", cwd=tmp_path)
    until((tmp_path / "run" / "metrics.csv").exists)
    stopped.send_signal(signal.SIGTERM)
    output = stopped.communicate(timeout=PATIENCE)[1].splitlines()[-1]
    assert output.endswith(f"--run {tmp_path}/run --import '{tmp_path}/my methods/mine.py'")
    rows = len(metrics(tmp_path / "run"))
    again = process(*shlex.split(output.partition("continue with: expgen ")[2]), cwd=tmp_path)
    until(lambda: len(metrics(tmp_path / "run")) > rows)
    again.send_signal(signal.SIGTERM)
    assert again.wait(PATIENCE) == 128 + signal.SIGTERM


OWN_ENCODER = """
import expgen, math, torch

@expgen.register("encoder", "mine")
class Mine(torch.nn.Module):
    def __init__(self, obs_shape, features):
        super().__init__()
        self.linear = torch.nn.Linear(math.prod(obs_shape), features)

    def forward(self, obs):
        return self.linear(obs.flatten(1).float() / 255)
"""
