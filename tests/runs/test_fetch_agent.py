"""expgen fetch NAME --from SOURCE: weights of shipped agents that an installation lists without them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expgen
from expgen.agents.policies import read_card
from expgen.errors import InputError
from expgen.runs import fetch_agent as module
from expgen.runs import shipped
from expgen.runs.fetch_agent import fetch_agent
from expgen.runs.shipped import PRETRAINED, bundled_agents, find_agent

NAME, FOLDER = "minimaze/best", "minimaze-best"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The agents of an installation that has the card of one agent, but not its weights."""
    where = tmp_path / "package"
    shutil.copytree(PRETRAINED / FOLDER, where / FOLDER)
    shutil.rmtree(where / FOLDER / "checkpoints")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for one in (shipped.find_agent, shipped.bundled_agents, module.fetch_agent):
        monkeypatch.setattr(one, "__defaults__", (where, *(one.__defaults__ or ())[1:]))
    return where


def test_agent_without_weights_is_listed_and_refused_with_the_command_that_gets_them(
    installed: Path, command: Callable[..., Any], refused: Callable[..., str]
) -> None:
    (line,) = [line for line in command("agents").out.splitlines() if line.startswith(NAME + " ")]
    assert line.endswith(f"(weights: expgen fetch {NAME} --from SOURCE)")
    assert f"expgen fetch {NAME} --from SOURCE" in refused("evaluate", NAME)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_fetched_agent_plays_by_its_name(
    installed: Path, scheme: str, command: Callable[..., Any], tmp_path: Path
) -> None:
    if scheme:
        pytest.importorskip("fsspec")
    target = tmp_path / "data" / "expgen" / "agents" / FOLDER
    assert command("fetch", NAME, "--from", f"{scheme}{PRETRAINED}") == (0, f"done: {target}\n", "")
    assert find_agent(NAME).folder.path == target and bundled_agents()[NAME].is_installed
    assert "fetch" not in command("agents").out
    assert command("evaluate", NAME, "--episodes", "4").status == 0
    scores = expgen.evaluate(
        expgen.load_agent(NAME), expgen.make_env("minimaze", levels=range(5000, 5010)), episodes=10
    )
    assert scores.mean_return > 5


def test_files_with_another_checksum_are_refused(installed: Path, refused: Callable[..., str], tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(PRETRAINED / FOLDER, source / FOLDER)
    file = next(iter(read_card(PRETRAINED / FOLDER / "card.json")["files"]))
    content = bytearray((source / FOLDER / file).read_bytes())
    content[-1] ^= 1
    (source / FOLDER / file).write_bytes(content)
    assert f"{file} of {NAME} in {source} does not match the checksum" in refused("fetch", NAME, "--from", source)
    assert not bundled_agents()[NAME].is_installed


def test_fetched_agent_of_another_version_is_not_used(installed: Path, tmp_path: Path) -> None:
    made = fetch_agent(NAME, PRETRAINED)
    assert bundled_agents()[NAME].folder.path == made.path
    made.card_file.write_text(made.card_file.read_text().replace("minutes", "hours"))
    assert not bundled_agents()[NAME].is_installed


def test_damaged_card_of_a_fetched_agent_is_replaced_by_fetching_again(
    installed: Path, command: Callable[..., Any], tmp_path: Path
) -> None:
    made = fetch_agent(NAME, PRETRAINED)
    for text in ("{", '{"files": 5}'):
        made.card_file.write_text(text)
        assert not bundled_agents()[NAME].is_installed and command("agents").status == 0
        fetch_agent(NAME, PRETRAINED)
        assert bundled_agents()[NAME].is_installed


def test_checkpoints_of_an_earlier_version_are_removed(installed: Path) -> None:
    made = fetch_agent(NAME, PRETRAINED)
    (file,) = made.checkpoints_of("explorer").glob("*.safetensors")
    newer = file.rename(file.with_name("000009999999.safetensors"))
    fetch_agent(NAME, PRETRAINED)
    assert file.exists() and not newer.exists()
    assert expgen.load_agent(NAME)


def test_agents_are_listed_without_a_home_directory(
    installed: Path, command: Callable[..., Any], refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert command("agents").status == 0 and not bundled_agents()[NAME].is_installed
    assert "accepted: the environment variable XDG_DATA_HOME" in refused("fetch", NAME, "--from", PRETRAINED)


def test_files_outside_the_agent_s_folder_are_not_read(installed: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / FOLDER).symlink_to(PRETRAINED / FOLDER)
    with pytest.raises(InputError, match="is a link to"):
        fetch_agent(NAME, source)


def test_fetch_refuses_wrong_names_and_sources(installed: Path, refused: Callable[..., str], tmp_path: Path) -> None:
    assert f"NAME is 'maze/none'; accepted: {NAME}" in refused("fetch", "maze/none", "--from", PRETRAINED)
    assert f"{tmp_path} has no {FOLDER}/checkpoints/" in refused("fetch", NAME, "--from", tmp_path)
    assert "accepted: expgen fetch NAME --from SOURCE" in refused("fetch", NAME, tmp_path, "--from", PRETRAINED)
    assert f"--from is missing; accepted: expgen fetch {NAME} --from SOURCE" in refused("fetch", NAME)
    assert "accepted: a URL as s3://BUCKET/RUN, or NAME --from SOURCE" in refused("fetch", "maze/none")
    assert "DIR is missing" in refused("fetch", "file:///nowhere")
