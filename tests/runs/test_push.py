"""expgen push: exported agents play like the originals; invalid targets and untrusted files are refused."""

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import expgen
from expgen.errors import FailedStorage, InputError
from expgen.runs.agent_files import read_agent, write_agent
from expgen.runs.push import push
from expgen.storage import hub as hub_module
from tests.storage.hub_server import Hub, hub_server


@pytest.fixture(scope="module")
def population(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "population"
    small.train(run, 1, algo="expgen", members=2, eval_every=10**9, **small.explorer)
    return run


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    constants = pytest.importorskip("huggingface_hub.constants")
    with hub_server() as server:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, server.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", "hf_" + "a" * 34)
        hub_module.download.cache_clear()
        yield server
        hub_module.download.cache_clear()


def played(agent: Any) -> list[Any]:
    env = expgen.make_env("minimaze", levels=range(500, 520), num_envs=5)
    return expgen.evaluate(agent, env, episodes=10).episodes


def test_pushed_folder_plays_like_its_run(population: Path, tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    assert len(push(population, folder).policies) == 3
    assert played(expgen.load_agent(folder)) == played(expgen.load_agent(population))
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert names == [
        "README.md",
        "agent.json",
        "card.json",
        *(f"checkpoints/{name}/000000000128.safetensors" for name in ("explorer", "member0", "member1")),
        "scores.csv",
    ]


def test_single_policy_of_a_shipped_agent_can_be_pushed(tmp_path: Path) -> None:
    for name in ("ppo", "maxent"):
        assert len(push(f"minimaze/{name}", tmp_path / name).policies) == 1
        assert played(expgen.load_agent(tmp_path / name)) == played(expgen.load_agent(f"minimaze/{name}"))


def test_model_card_describes_the_agent_and_its_scores(population: Path, tmp_path: Path) -> None:
    push(population, tmp_path / "agent")
    text = (tmp_path / "agent" / "README.md").read_text()
    _, head, body = text.split("---\n", 2)
    assert yaml.safe_load(head)["library_name"] == "expgen" and "reinforcement-learning" in yaml.safe_load(head)["tags"]
    assert "# agent" in body and "`minimaze`" in body and "Policies: 3. Environment steps: 384." in body
    assert "| member0 | unseen | 4 |" in body and 'expgen.load_agent("agent")' in body
    assert "temperature" not in body
    write_agent(dataclasses.replace(read_agent(population), temperature=0.25), population / "colder.json")
    push(population / "colder.json", tmp_path / "colder")
    assert "It samples its actions at temperature 0.25." in (tmp_path / "colder" / "README.md").read_text()


def test_changed_weights_of_a_pushed_agent_are_refused(population: Path, tmp_path: Path) -> None:
    push(population, tmp_path / "agent")
    member = tmp_path / "agent" / "checkpoints" / "member0"
    shutil.copy(next((member.parent / "member1").glob("*")), next(member.glob("*")))
    with pytest.raises(InputError, match="do not match the checksum"):
        expgen.load_agent(tmp_path / "agent")


def test_agent_round_trips_through_the_hub(
    hub: Hub, population: Path, command: Callable[..., Any], tmp_path: Path
) -> None:
    outcome = command("push", population, "hf://someone/maze-agent", "--private")
    assert outcome.status == 0, outcome.err
    assert "expgen.load_agent('hf://someone/maze-agent')" in outcome.out
    files = hub.files["someone/maze-agent"]
    assert hub.private["someone/maze-agent"] and {"README.md", "agent.json", "scores.csv"} <= files.keys()
    assert b'expgen.load_agent("hf://someone/maze-agent")' in files["README.md"]
    assert played(expgen.load_agent("hf://someone/maze-agent")) == played(expgen.load_agent(population))
    scores = tmp_path / "scores.csv"
    outcome = command("evaluate", "hf://someone/maze-agent", "--episodes", 2, "--scores", scores)
    assert outcome.status == 0 and scores.exists(), outcome.err


def test_download_takes_only_agent_files(hub: Hub, population: Path) -> None:
    push(population, "hf://someone/agent")
    extra = {"setup.py": b"boom", "weights.bin": b"pickle", "checkpoints/x/../../y.safetensors": b"", "a.json": b"{}"}
    hub.files["someone/agent"].update(extra)
    folder = hub_module.download("hf://someone/agent")
    names = {path.name for path in folder.rglob("*") if path.is_file() and ".cache" not in path.parts}
    assert names == {"agent.json", "card.json", "scores.csv", "000000000128.safetensors"}


def test_module_named_in_a_downloaded_file_is_not_imported(hub: Hub, population: Path) -> None:
    push(population, "hf://stranger/agent")
    files = hub.files["stranger/agent"]
    agent = json.loads(files["agent.json"])
    agent["env"] = "gymnasium:antigravity:X-v0"
    files["agent.json"] = json.dumps(agent).encode()
    loaded = expgen.load_agent("hf://stranger/agent")  # loading needs no environment
    assert loaded.act(np.zeros((1, 11, 11, 3), dtype=np.uint8), np.ones(1, dtype=bool)).shape == (1,)
    with pytest.raises(InputError, match="would import the module 'antigravity', named only in a file"):
        expgen.diagnose("hf://stranger/agent", episodes=1)


def test_repository_without_a_valid_agent_is_refused(
    hub: Hub, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "cannot read hf://no/body" in refused("evaluate", "hf://no/body")
    hub.files["some/thing"] = {"model.safetensors": b""}
    assert "hf://some/thing holds no agent.json" in refused("evaluate", "hf://some/thing")
    hub.files["some/damage"] = {"agent.json": b"[]"}
    assert "does not describe an agent" in refused("evaluate", "hf://some/damage")
    monkeypatch.setattr(hub_module, "MAX_BYTES", 1)
    hub.files["some/giant"] = {"agent.json": b"{}"}
    assert "hf://some/giant holds 1 files of 2 bytes; accepted: at most 200" in refused("evaluate", "hf://some/giant")


def test_unreachable_hub_is_a_storage_failure(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(FailedStorage, match="cannot read hf://some/body"):
        expgen.load_agent("hf://some/body")


WRONG = {
    "nothing": ([], "the following arguments are required: RUN_OR_AGENT, TO"),
    "no target": (["RUN"], "the following arguments are required: TO"),
    "three": (["RUN", "a", "b"], "unrecognized arguments: b"),
    "no such agent": (["nowhere", "new"], "nowhere is no run folder"),
    "a run as target": (["RUN", "RUN"], "which is not empty; accepted: hf://USER/NAME, or a new folder"),
    "a file as target": (["RUN", "RUN/config.json"], "which is not empty"),
    "below a file": (["RUN", "RUN/config.json/new"], "cannot write"),
    "a bucket": (["RUN", "file:///bucket/agent"], "accepted: hf://USER/NAME, or a folder that is new or empty"),
    "memory": (["RUN", "memory://x"], "memory://x is lost with the process"),
    "a hub without a name": (["RUN", "hf://"], "'hf://' is not a repository; accepted: hf://USER/NAME"),
    "a hub without a user": (["RUN", "hf://agent"], "'hf://agent' is not a repository"),
    "a hub's folder": (["RUN", "hf://user/agent/folder"], "'hf://user/agent/folder' is not a repository"),
    "a hub with dots": (["RUN", "hf://user/.."], "'hf://user/..' is not a repository"),
    "a hub with spaces": (["RUN", "hf://user/my agent"], "'hf://user/my agent' is not a repository"),
    "a hub in Greek": (["RUN", "hf://user/μ"], "'hf://user/μ' is not a repository"),
    "a hub with two dashes": (["RUN", "hf://user/a--b"], "'hf://user/a--b' is not a repository"),
    "a revision": (["RUN", "hf://user/agent@v1"], "accepted: hf://USER/NAME without a revision"),
    "an empty revision": (["RUN", "hf://user/agent@"], "is not a repository"),
    "private folder": (["RUN", "new", "--private"], "accepted with --private: hf://USER/NAME"),
    "private with a value": (["RUN", "new", "--private=yes"], "--private: ignored explicit argument 'yes'"),
    "unknown flag": (["RUN", "new", "--public"], "unrecognized arguments: --public"),
    "an odd agent": (["hf://user", "new"], "'hf://user' is not a repository"),
}


@pytest.mark.parametrize("case", WRONG)
def test_invalid_push_arguments_are_refused(
    case: str, population: Path, refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words, line = WRONG[case]
    assert line in refused("push", *(word.replace("RUN", str(population)) for word in words))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words", [["train", "--run", "hf://user/agent"], ["status", "hf://user/agent"], ["fetch", "hf://user/agent", "x"]]
)
def test_hub_url_is_refused_as_a_run(words: list[str], refused: Callable[..., str]) -> None:
    assert "hf://user/agent is an agent, not a run; accepted: a folder, or a URL" in refused(*words)


def test_missing_hub_library_is_reported_in_one_line(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    line = refused("evaluate", "hf://some/one")
    assert line == "expgen: hf://some/one needs huggingface_hub; accepted: pip install 'expgen[hub]'"
