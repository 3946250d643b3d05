"""The inspector page: escaping, no external resources, content of the data, and size."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from expgen.agents.agent import UniformAgent
from expgen.envs.levels import LevelSet
from expgen.envs.library import is_installed
from expgen.watch.page import inspector_page, player, player_assets, player_data, player_group, players_in
from expgen.watch.record import Recording, record_episode
from expgen.watch.stage import open_stage

EVIL = '</script><script>alert("&\u2028")</script>'


def data_in(fragment: str) -> Any:
    found = re.search(r'<script type="application/json">(.*?)</script>', fragment, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_names_are_escaped_in_the_page(mixed: Recording) -> None:
    page = inspector_page([mixed._replace(agent=EVIL, env='<img src="x">')])
    shown = re.sub(r'<script type="application/json">.*?</script>', "", page, flags=re.DOTALL)
    assert 'alert("' not in shown and "alert(&#34;" in shown
    assert "<img" not in page and page.count("</script>") == 2  # the player and its data
    assert data_in(players_in(page)[0])["agent"] == EVIL


def test_page_forbids_external_resources(mixed: Recording) -> None:
    page = inspector_page([mixed])
    assert "default-src 'none'; img-src data:;" in page
    assert not re.search(r'(src|href)="(?!data:)', page) and "@import" not in page and "fetch(" not in page
    addresses = set(re.findall(r"https?://[^\"' ]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # an XML namespace, not a request


def test_player_data_has_the_recorded_steps(mixed: Recording) -> None:
    data = player_data(mixed)
    assert len(data["steps"]) == len(data["film"]["frames"]) == len(data["seen"]["frames"]) == len(mixed.steps)
    assert data["quorum"] == 3 and data["members"] == 4 and data["return"] == mixed.episode_return
    assert data["place"] == "minimaze level 1003, an unseen level"
    for shown, step in zip(data["steps"], mixed.steps):
        assert (shown["who"], shown["action"]) == (step.reason.who, step.action)
        assert tuple(shown.get("votes", ())) == step.reason.votes and shown["place"] == step.position
        assert sum(shown["explorer"]) == pytest.approx(1, abs=0.01)


def test_player_data_has_candidate_and_ignored_consensus(outvoted: Recording, mixed: Recording) -> None:
    assert (player_data(outvoted)["vote"], player_data(mixed)["vote"]) == ("majority", "leader")
    for shown, step in zip(player_data(outvoted)["steps"], outvoted.steps):
        assert shown.get("member") == (step.reason.member or None)  # omitted for the leader, member 0
        assert shown.get("setAside", 0) == step.reason.is_set_aside
    assert not any("member" in shown or "setAside" in shown for shown in player_data(mixed)["steps"])


def test_players_in_extracts_players_of_a_page(mixed: Recording) -> None:
    other = mixed._replace(agent="ppo")
    page = inspector_page([mixed, other], title="two <agents>")
    assert "<title>two &lt;agents&gt;</title>" in page
    assert players_in(page) == [player(mixed), player(other)]
    assert player_group(players_in(page)) in page
    assert all(style in page for style in re.findall(r"<style>.*?</style>", player_assets(), re.DOTALL))


@pytest.mark.procgen
@pytest.mark.skipif(not is_installed(), reason="needs the ProcGen library (scripts/setup-procgen)")
def test_page_of_500_procgen_maze_steps_is_small() -> None:
    stage = open_stage("procgen:maze", LevelSet((3,)))
    recording = record_episode(UniformAgent(15), stage, "random", level=3)
    page = inspector_page([recording])
    assert len(recording.steps) == 500 and len(page) < 2_000_000
    assert data_in(page)["film"]["width"] == 512  # at full resolution


def test_player_data_omits_empty_values(record: Callable[..., Recording]) -> None:
    steps = player_data(record(UniformAgent(5)))["steps"]
    assert "reward" not in steps[0] and "value" not in steps[0] and "votes" not in steps[0]


def test_player_data_marks_hedged_steps(hedged: Recording, mixed: Recording) -> None:
    for step, shown in zip(hedged.steps, player_data(hedged)["steps"], strict=True):
        assert shown.get("hedged", 0) == step.reason.is_hedged
        assert not step.reason.is_hedged or step.reason.who == "explorer"
    assert not any("hedged" in shown for shown in player_data(mixed)["steps"])
