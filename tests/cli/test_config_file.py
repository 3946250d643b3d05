"""expgen train --config FILE: the same run as with flags, overrides, and wrong files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.cli.train_flags import expand_runs, parse_runs
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import make_config

yaml = pytest.importorskip("yaml")
PLANS = Path(__file__).parents[2] / "results" / "plans"


def config_of(run: Path) -> dict[str, Any]:
    return json.loads((run / "config.json").read_text())["train"]


@pytest.mark.parametrize("ending", ["yaml", "yml", "json"])
def test_config_file_gives_the_same_run_as_flags(
    ending: str, small: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    values = {**small.settings, "steps": 256, "gamma": 0.9, "run": str(tmp_path / "file")}
    values = {name.replace("_", "-"): value for name, value in values.items()}
    nested = {
        **values,
        "algo": "ppo",
        "network": {"features": 16},
        "options": {"texture": 0},
        "normalize_reward": False,
    }
    file = tmp_path / f"config.{ending}"
    file.write_text(json.dumps(nested) if ending == "json" else yaml.safe_dump(nested))
    assert command("train", "--config", file).status == 0
    flags = small.flags(tmp_path / "flags", 2, gamma=0.9)
    assert command(*flags, "--no-normalize-reward", "--option", "texture=0").status == 0
    assert RunFolder(tmp_path / "file").read_config() == RunFolder(tmp_path / "flags").read_config()


def test_flags_override_the_config_file(small: Any, command: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({**small.settings, "game": "maze", "seed": [0, 1], "steps": "1M", "clip": 0.3}))
    words = ["--run", tmp_path / "run", "--seed", 3, "--steps", 128, "--env", "minimaze"]
    outcome = command("train", "--config", file, *words)
    assert outcome.status == 0, outcome.err
    found = config_of(tmp_path / "run")
    assert (found["env"], found["seed"], found["steps"]) == ("minimaze", 3, 128) and found["algorithm"]["clip"] == 0.3


def test_game_overrides_the_environment_of_the_config_file(refused: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("env: minimaze\ngame: maze\n")
    assert "GAME is 'golf'" in refused("train", "golf", "--config", file)
    assert "--env is 'chess'" in refused("train", "--env", "chess", "--config", file, "--seed", "0,1")


def test_list_of_seeds_trains_one_run_each(small: Any, command: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({**small.settings, "seed": [4, 5], "steps": 128, "run": str(tmp_path / "runs")}))
    assert command("train", "--config", file).status == 0
    assert [config_of(tmp_path / "runs" / f"seed{seed}")["seed"] for seed in (4, 5)] == [4, 5]


def test_config_json_of_a_population_trains_the_same_population(
    small: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    small.train(tmp_path / "first", 1, algo="expgen", members=2, explorer_gamma=0.7, **small.explorer)
    outcome = command("train", "--config", tmp_path / "first" / "config.json", "--run", tmp_path / "again")
    assert outcome.status == 0, outcome.err
    assert config_of(tmp_path / "again") == config_of(tmp_path / "first")


def test_config_file_with_runs_trains_each_with_its_own_algorithm(
    small: Any, equal: Callable[..., bool], command: Callable[..., Any], tmp_path: Path
) -> None:
    runs = {"members": {"algo": "ppo", "seed": [0, 1], "clip": 0.3}, "explorer": {"algo": "maxent", "end-value": 0.5}}
    file = tmp_path / "runs.yaml"
    file.write_text(yaml.safe_dump({**small.settings, "steps": 999, "run": str(tmp_path / "all"), "runs": runs}))
    outcome = command("train", "--config", file, "--steps", 256)
    assert outcome.status == 0 and outcome.out.count("done: ") == 3, outcome.err
    assert sorted(each.name for each in (tmp_path / "all").iterdir()) == ["explorer", "members-seed0", "members-seed1"]
    member, explorer = config_of(tmp_path / "all" / "members-seed1"), config_of(tmp_path / "all" / "explorer")
    assert (member["algo"], member["seed"], member["algorithm"]["clip"]) == ("ppo", 1, 0.3)
    assert (explorer["algo"], explorer["reward"]["end_value"], explorer["algorithm"]["clip"]) == ("maxent", 0.5, 0.2)
    assert {each["steps"] for each in (member, explorer)} == {256}
    small.train(tmp_path / "alone", 2, algo="maxent", end_value=0.5)
    assert equal(small.weights(tmp_path / "all" / "explorer"), small.weights(tmp_path / "alone"))
    again = command("train", "--config", file, "--steps", 384, "--resume")
    assert again.status == 0, again.err
    assert config_of(tmp_path / "all" / "explorer")["steps"] == 384


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "runs is []; accepted: names, each with its flags"),
        ({}, "runs is {}; accepted: names, each with its flags"),
        ({"../a": {}}, "runs has the name '../a'; accepted: letters, digits, '_', '-' and '.'"),
        ({"..": {}}, "runs has the name '..'; accepted"),
        ({"a": 3}, "a is 3; accepted: names of flags with their values"),
        ({"a": {}, "b": {"device": "cpu"}}, "b has 'device', which all runs share; accepted: outside runs"),
        (
            {"a": {}, "b": {"clipp": 1}},
            "has the key 'clipp', which is not a flag of expgen train; did you mean 'clip'?",
        ),
        ({"a": {"seed": [0, 1]}, "a-seed1": {}}, "all/a-seed1; accepted: names that give different folders"),
        ({"a": {"runs": {"b": {}}}}, "has the key 'runs', which is not a flag of expgen train"),
    ],
)
def test_wrong_runs_in_config_file_are_rejected_before_training(
    runs: Any, message: str, refused: Callable[..., str], tmp_path: Path
) -> None:
    file = tmp_path / "runs.yaml"
    file.write_text(yaml.safe_dump({"preset": "smoke", "run": str(tmp_path / "all"), "runs": runs}))
    assert message in refused("train", "--config", file)
    assert not (tmp_path / "all").exists()


def test_config_file_can_name_the_run_to_resume(small: Any, command: Callable[..., Any], tmp_path: Path) -> None:
    small.train(tmp_path / "run", 1, algo="maxent")
    file = tmp_path / "more.json"
    file.write_text(json.dumps({"run": str(tmp_path / "run"), "resume": True, "steps": 256, "device": "cpu"}))
    assert command("train", "--config", file).status == 0
    assert config_of(tmp_path / "run")["steps"] == 256


# nested lists of ten: the last would fill the memory if it were expanded
BOMB = "x0: &x0 [a]\n" + "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]\n" for n in range(1, 10))
WRONG = {
    "no file": (None, "--config is 'FILE': No such file or directory; accepted: a file that can be read"),
    "empty": ("", "FILE is None; accepted: names of flags with their values"),
    "a list": ("- algo\n- ppo\n", "FILE is ['algo', 'ppo']; accepted: names of flags"),
    "a word": ("ppo", "FILE is 'ppo'; accepted: names of flags"),
    "no YAML": ("algo: [", "--config FILE is not valid YAML"),
    "an object of Python": ("algo: !!python/object/apply:os.system ['true']", "--config FILE is not valid YAML"),
    "unknown key": ("weather: red", "FILE has the key 'weather', which is not a flag of expgen train; see"),
    "misspelt key": (
        "gama: 0.9",
        "FILE has the key 'gama', which is not a flag of expgen train; did you mean 'gamma'?",
    ),
    "another algorithm's": ("beta: 0.5", "FILE has the key 'beta', which is not a flag of expgen train"),
    "in an unknown group": ("net: {width: 2}", "FILE has the key 'net'"),
    "unknown in a group": ("network: {depth: 2}", "FILE has the key 'depth'"),
    "a group that is a number": ("network: 3", "FILE: network is 3; accepted: names of flags"),
    "of the explorer": ("algo: ppo\nexplorer: {steps: 5}", "FILE has the key 'explorer_steps'"),
    "a number in words": ("gamma: much", "--gamma is 'much'; accepted: a number"),
    "out of range": ("gamma: 2", "--gamma is 2.0; accepted: 0 to 1"),
    "nothing for a value": ("gamma:", "--gamma is None; accepted: a text, a number or a list of them"),
    "a mapping for a value": ("gamma: {a: 1}", "--gamma is {'a': 1}; accepted: a text"),
    "an empty list": ("levels: []", "--levels is []; accepted: a text, a number or a list of them"),
    "algorithm": ("algo: a3c", "--algo is 'a3c'; accepted: ppo"),
    "preset": ("preset: huge", "--preset is 'huge'; accepted: paper"),
    "a file within": ("config: other.yaml", "FILE has the key 'config', which is not a flag"),
    "a module to import": ("env: 'gymnasium:os:X-v0'", "would import the module 'os', named only in a file"),
    "a module to import, in short": ("env: 'os:X-v0'", "would import the module 'os', named only in a file"),
    "a module as a game": ("env: gymnasium\ngame: 'os:X-v0'", "would import the module 'os'"),
    "a wrapper": ("wrapper: ['os:Wrapper']", "would import the module 'os', named only in a file"),
    "a wrapper as an option": ("options: {wrappers: 'os:Wrapper'}", "would import the module 'os'"),
    "a group in itself": ("network: &x {network: *x}", "FILE has the key 'network', which is not a flag"),
    "what grows as it is read": (BOMB + "game: *x9", "--game is [[[[[["),
    "--import": ("import: os", "FILE has the key 'import', which is not a flag"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_config_files_are_rejected_in_one_line(
    case: str, refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text, line = WRONG[case]
    file = tmp_path / "config.yaml"
    if text is not None:
        file.write_text(text)
    assert line.replace("FILE", str(file)) in refused("train", "--config", file)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("config.toml", "--config is 'config.toml'; accepted: a file that ends in .json, .yaml, .yml"),
        ("config", "--config is 'config'; accepted: a file that ends in"),
        (
            "s3://bucket/config.yaml",
            "--config is 's3://bucket/config.yaml'; accepted: a file or folder of this machine",
        ),
        (".", "--config is '.'; accepted: a file that ends in"),
        ("folder.yaml", "folder.yaml is a folder; accepted: a regular file"),
    ],
)
def test_config_rejects_other_files_in_one_line(
    name: str, line: str, refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.yaml").mkdir()
    assert line in refused("train", "--config", name)
    assert "--config: expected one argument" in refused("train", "--config")


@pytest.mark.parametrize("file", sorted(PLANS.glob("*.yaml")), ids=lambda file: file.stem)
def test_plans_of_the_results_are_valid(file: Path) -> None:
    words = next(line for line in file.read_text().splitlines() if "expgen train" in line).split("train")[1].split()
    assert words[words.index("--config") + 1] == f"results/plans/{file.name}"
    words[words.index("--config") + 1] = str(file)
    runs = [run for arguments in parse_runs(words) for run in expand_runs(arguments)]
    assert len({str(run["run"]) for run in runs}) == len(runs) == int(words[words.index("--processes") + 1])
    for run in runs:
        names = {"average", "steps", "envs", "rollout_steps", "mirror", "recolor", "encoder", "value_epochs", "gamma"}
        settings = {name: run[name] for name in names & run.keys()}
        config = make_config(run["env"] or f"procgen:{run['game']}", run["algo"], **settings)
        assert config.steps == run["steps"] and config.average == 0.98
