"""The inspector in a browser."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from expgen.agents.agent import PolicyAgent, TurnsAgent
from expgen.agents.consensus import ConsensusAgent, ConsensusConfig
from expgen.agents.mean import MeanAgent
from expgen.envs.levels import LevelSet
from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import NetworkConfig, Policy, make_policy
from expgen.watch.actions import ActionRows
from expgen.watch.page import inspector_page, player, player_assets
from expgen.watch.record import Recording, record_episode
from expgen.watch.stage import open_stage

SPEC = EnvSpec("minimaze", (11, 11, 3), "uint8", 5)
EVIL = "<img src=x onerror=alert(1)>"
SHOWN = "[...document.querySelectorAll('.xg-line')].map(line => line.getAttribute('aria-valuenow') - 1)"
BOXES = """[...document.querySelectorAll('.xg-front *, .xg-side *, .xg-line')].filter(
    e => e.matches('.xg-actor, canvas, .xg-why, .xg-box, .xg-row, .xg-box h4, .xg-note, .xg-line')).map(
    e => (b => [b.top, b.height].map(Math.round))(e.getBoundingClientRect()))"""


def make_network(seed: int, memory: bool = False) -> Policy:
    config = NetworkConfig(encoder="small", features=16, memory="gru" if memory else "none")
    policy = make_policy(SPEC, config, torch.Generator().manual_seed(seed), torch.device("cpu"))
    policy.policy_head.weight.data *= 300  # clear preferences
    return policy


def play(agent: Any, name: str, limit: int) -> Recording:
    stage = open_stage("minimaze", LevelSet((1003,)), time_limit=limit)
    return record_episode(agent, stage, name, split="test")


@pytest.fixture(scope="module")
def expgen() -> Recording:
    members = [make_network(index) for index in range(4)]
    agent = ConsensusAgent(members, make_network(9, memory=True), SPEC, ConsensusConfig(min_agree=3), seed=1)
    return play(agent, EVIL, 40)


@pytest.fixture(scope="module")
def outvoted() -> Recording:
    """A majority vote in which the ensemble acts once per frame."""
    members = [make_network(index) for index in range(4)]
    config = ConsensusConfig(min_agree=2, vote="majority", once=True)
    return play(ConsensusAgent(members, make_network(9, memory=True), SPEC, config, seed=4), "expgen", 40)


@pytest.fixture(scope="module")
def ppo() -> Recording:
    return play(PolicyAgent(make_network(0)), "ppo", 25)


@pytest.fixture
def show(page: Any, tmp_path: Path) -> Callable[[str], None]:
    """Open a page and wait for its first frame."""

    def open_page(content: str) -> None:
        file = tmp_path / "page.html"
        file.write_text(content)
        page.open(file)
        page.wait_for("document.querySelector('.xg-stage canvas')?.dataset.frame === '0'")

    return open_page


def step_of(page: Any) -> int:
    """Return the current step, after waiting for its frame."""
    step = int(page.run("document.querySelector('.xg-line').getAttribute('aria-valuenow')")) - 1
    page.wait_for(f"document.querySelector('.xg-stage canvas').dataset.frame === '{step}'")
    return step


def test_inspector_keys_step_jump_and_play(page: Any, show: Callable[[str], None], expgen: Recording) -> None:
    show(inspector_page([expgen]))
    last = len(expgen.steps) - 1
    for key, expected in (
        *(("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("PageDown", 11), ("PageUp", 1), ("PageUp", 0)),
        *(("ArrowLeft", 0), ("End", last), ("ArrowRight", last), ("Home", 0)),
    ):
        page.press(key)
        assert step_of(page) == expected, key
    assert page.texts(".xg-play") == ["▶ Play"]
    page.press("Space")
    assert page.texts(".xg-play") == ["❚❚ Pause"]
    page.wait_for("document.querySelector('.xg-line').getAttribute('aria-valuenow') > 3")
    page.press("Space")
    assert page.texts(".xg-play") == ["▶ Play"]
    assert page.texts(".xg-count") == [f"step {step_of(page) + 1} / {len(expgen.steps)}"]


def test_inspector_keys_jump_between_changes_of_actor(
    page: Any, show: Callable[[str], None], expgen: Recording
) -> None:
    show(inspector_page([expgen]))
    who = [step.reason.who for step in expgen.steps]
    begins = [t for t in range(1, len(who)) if who[t] != who[t - 1]]
    assert len(begins) > 1
    for expected in begins:
        page.press("n")
        assert step_of(page) == expected
    page.press("p")
    assert step_of(page) == begins[-2]


def test_inspector_timeline_click_jumps_to_step(page: Any, show: Callable[[str], None], expgen: Recording) -> None:
    show(inspector_page([expgen]))
    for share in (0.75, 0.26, 0.99):
        page.click(".xg-line", across=share)
        assert step_of(page) == int(share * len(expgen.steps))
    page.press("Home")  # the timeline has the focus now
    assert step_of(page) == 0


def test_inspector_shows_actor_reason_and_votes_of_every_step(
    page: Any, show: Callable[[str], None], expgen: Recording
) -> None:
    show(inspector_page([expgen]))
    asked = 0
    for t, step in enumerate(expgen.steps):
        assert step_of(page) == t
        why = step.reason
        action = expgen.actions.actions[step.action]
        (actor,), (sentence,) = page.texts(".xg-actor"), page.texts(".xg-why")
        assert actor.startswith(why.who.title()) and actor.endswith(action) and action in sentence
        asked = t if why.votes else asked
        votes = expgen.steps[asked].reason
        chips = page.run("[...document.querySelectorAll('.xg-chip')].map(c => [c.dataset.agrees, c.title])")
        assert sorted(title for _, title in chips) == sorted(
            f"Member {member}{' (the leader)' if member == 0 else ''} votes {expgen.actions.actions[vote]}"
            for member, vote in enumerate(votes.votes)
        )
        assert [agrees for agrees, _ in chips].count("1") == sum(votes.agrees)
        if why.who == "ensemble":
            assert f"{sum(why.agrees)} of 4 members" in sentence and "The ensemble agrees" in sentence
        elif why.votes:
            assert f"Only {sum(why.agrees)} of 4" in sentence and f"for {why.lasts + 1} step" in sentence
        else:
            assert "There is no vote" in sentence
        visited = len({other.position for other in expgen.steps[: t + 1]})
        assert page.texts(".xg-map .xg-note")[0].startswith(f"{visited} of {expgen.level_map.reachable} cells")
        page.press("ArrowRight")


def test_inspector_explains_majority_and_ignored_consensus(
    page: Any, show: Callable[[str], None], outvoted: Recording
) -> None:
    show(inspector_page([outvoted]))
    set_aside = sum(step.reason.is_set_aside for step in outvoted.steps)
    assert set_aside and f"frame acted on before: {set_aside} step" in page.texts(".xg-line + .xg-legend")[0]
    for t, step in enumerate(outvoted.steps):
        assert step_of(page) == t
        why, (sentence,) = step.reason, page.texts(".xg-why")
        assert ("The ensemble has acted on this frame before" in sentence) == why.is_set_aside
        assert (f"member {why.member}’s action is executed" in sentence) == (why.who == "ensemble")
        assert ("the action with the most votes" in sentence) == bool(why.votes)
        assert ("Only " in sentence) == (bool(why.votes) and sum(why.agrees) < 2)
        page.press("ArrowRight")


def test_inspector_canvases_show_the_recorded_pixels(page: Any, show: Callable[[str], None], expgen: Recording) -> None:
    show(inspector_page([expgen]))
    page.press("End")
    t = step_of(page)
    page.wait_for(f"document.querySelector('.xg-seen canvas').dataset.frame === '{t}'")
    for selector, film in ((".xg-stage canvas", expgen.film), (".xg-seen canvas", expgen.seen)):
        height, width = film.shape[:2]
        drawn = page.run(
            f"(c => [...c.getContext('2d').getImageData(0, 0, {width}, {height}).data])"
            f"(document.querySelector('{selector}'))"
        )
        shown = [drawn[at : at + 3] for at in range(0, len(drawn), 4 * 97)]
        assert shown == film[t].reshape(-1, 3)[::97].tolist()


def test_inspector_escapes_names(page: Any, show: Callable[[str], None], expgen: Recording) -> None:
    show(inspector_page([expgen]))
    assert page.texts(".xg-head h3") == [EVIL] and page.run("document.images.length") == 0


def test_inspector_steps_two_agents_on_one_level_together(
    page: Any, show: Callable[[str], None], expgen: Recording, ppo: Recording
) -> None:
    show(inspector_page([ppo, expgen]))
    page.press("PageDown")
    assert page.run(SHOWN) == [10, 10]
    page.press("End")  # the shorter episode stays at its end
    assert page.run(SHOWN) == [len(ppo.steps) - 1, len(expgen.steps) - 1]
    assert page.run("document.querySelectorAll('.xg-end.xg-unseen').length") == 0


def test_embedded_players_take_keys_only_with_focus(
    page: Any, show: Callable[[str], None], expgen: Recording, ppo: Recording
) -> None:
    show(f"<!DOCTYPE html><title>a report</title>{player_assets()}<p>one</p>{player(ppo)}<p>two</p>{player(expgen)}")
    page.press("ArrowRight")
    assert page.run(SHOWN) == [0, 0]
    page.run("document.querySelectorAll('.xg-line')[1].focus()")
    page.press("ArrowRight")
    assert page.run(SHOWN) == [0, 1]


def test_inspector_names_explorers_without_members_by_turn(page: Any, show: Callable[[str], None]) -> None:
    agent = TurnsAgent([make_network(index, memory=True) for index in range(3)], turn=2, seed=1)
    recording = play(agent, "openend", 9)
    show(inspector_page([recording]))
    for step in recording.steps[:3]:
        (why,) = page.texts(".xg-why")
        assert why.startswith(f"It is the turn of explorer {step.reason.turn} of 3, which samples")
        page.press("ArrowRight")
    assert page.texts(".xg-box h4")[0] == "The explorer’s choice" and page.flaws() == []
    mixed = TurnsAgent([make_network(index, memory=index == 1) for index in range(2)], turn=2, seed=1)
    show(inspector_page([play(mixed, "turns", 9)]))
    assert page.texts(".xg-why")[0].startswith("It is the turn of policy ")
    assert page.texts(".xg-box h4")[0] == "The policy’s choice" and page.flaws() == []


def test_inspector_names_the_row_of_a_probability_that_several_actions_share(
    page: Any, show: Callable[[str], None], ppo: Recording
) -> None:
    show(inspector_page([ppo]))
    assert re.search(r" samples from its probabilities: \w+ \(\d+\s%\)\.$", page.texts(".xg-why")[0])
    rows = ActionRows(ppo.actions.actions, ("any",), (0,) * len(ppo.actions.actions))
    show(inspector_page([ppo._replace(actions=rows)]))
    assert re.search(r" samples from its probabilities: \w+ \(“any” 100\s%\)\.$", page.texts(".xg-why")[0])


def test_inspector_names_a_mean_of_policies(page: Any, show: Callable[[str], None]) -> None:
    show(inspector_page([play(MeanAgent([make_network(index) for index in range(3)], seed=1), "mean", 9)]))
    assert page.texts(".xg-why")[0].startswith("The action is sampled from the mean of 3 policies: ")
    assert page.texts(".xg-box h4")[0] == "The mean of 3 policies" and page.flaws() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 800, 400])
def test_inspector_has_no_layout_flaws(
    page: Any, show: Callable[[str], None], expgen: Recording, ppo: Recording, width: int, scheme: str
) -> None:
    page.set_color_scheme(scheme)
    page.resize(width, 900)
    for recordings in ([expgen], [ppo, expgen]):
        show(inspector_page(recordings))
        for key in ("Home", "End"):
            page.press(key)
            assert page.flaws() == []


@pytest.mark.parametrize("width", [1400, 400])
def test_inspector_layout_is_stable_while_stepping(
    page: Any, show: Callable[[str], None], expgen: Recording, width: int
) -> None:
    page.resize(width, 900)
    show(inspector_page([expgen]))
    before = page.run(BOXES)
    for _ in expgen.steps:
        page.press("ArrowRight")
        step_of(page)
        assert page.run(BOXES) == before


def test_inspector_level_is_not_covered(page: Any, show: Callable[[str], None], expgen: Recording) -> None:
    show(inspector_page([expgen]))
    page.press("End")
    page.run("document.querySelector('.xg-stage canvas').scrollIntoView({block: 'center'})")
    over = """(c => { const b = c.getBoundingClientRect(); const hit = [];
        for (let x = 2; x < b.width; x += 15) for (let y = 2; y < b.height; y += 15)
          hit.push(document.elementFromPoint(b.left + x, b.top + y) === c);
        return [hit.length, hit.every(Boolean)]; })(document.querySelector('.xg-stage canvas'))"""
    points, is_free = page.run(over)
    assert points > 500 and is_free


def test_inspector_question_mark_opens_key_help(page: Any, show: Callable[[str], None], expgen: Recording) -> None:
    show(inspector_page([expgen]))
    page.press("?")
    assert page.run("document.querySelector('.xg-help').open")
    assert page.texts(".xg-help kbd") == ["Space", "← →", "Page Up, Page Down", "P, N", "Home, End", "?"]
    page.press("ArrowRight")
    assert step_of(page) == 0  # the help dialog takes the keys
    page.click(".xg-help button")
    assert not page.run("document.querySelector('.xg-help').open")


def test_inspector_url_holds_level_and_step(page: Any, show: Callable[[str], None], expgen: Recording) -> None:
    show(inspector_page([expgen]))
    page.press("PageDown")
    assert page.run("location.hash") == "#level=1003&step=11"
    page.run("location.hash = '#level=1003&step=5'")
    page.wait_for("document.querySelector('.xg-line').getAttribute('aria-valuenow') === '5'")
    page.run("window.isOld = true; setTimeout(() => location.reload()), 0")
    page.wait_for("!window.isOld && document.querySelector('.xg-stage canvas')?.dataset.frame === '4'")
    page.run("location.hash = '#level=7&step=9'")
    page.wait_for("document.querySelector('.xg-count').innerText.startsWith('level 7 is not on this page')")
    assert step_of(page) == 4
