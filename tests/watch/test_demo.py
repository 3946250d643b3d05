"""The demo: all agents on the same unseen levels, and a page that replays episodes of the evaluation."""

import json
import re

import pytest

from expgen.watch.demo import EXPGEN, EXPLORING, OPEN_END, PPO, DemoResult, demo_page, demo_results
from expgen.watch.page import players_in


@pytest.fixture(scope="module")
def results() -> list[DemoResult]:
    return list(demo_results("minimaze", 40, num_envs=20))


def test_all_agents_play_the_same_levels(results: list[DemoResult]) -> None:
    assert [result.title for result in results][1::3] == [PPO, EXPGEN]
    levels = [[episode.level for episode in result.evaluation.episodes] for result in results]
    assert all(own == levels[0] for own in levels) and len(levels[0]) == 40
    assert min(levels[0]) >= 200  # none of the training levels


def test_page_replays_episodes_of_the_evaluation(results: list[DemoResult]) -> None:
    page = demo_page("minimaze", results)
    shown = [json.loads(re.findall(r"json\">(.*?)</script>", text)[0]) for text in players_in(page)]
    assert [data["agent"] for data in shown] == [PPO, EXPGEN, PPO, EXPGEN, EXPLORING, OPEN_END]
    by_title = {result.title: result.evaluation.episodes for result in results}
    for data in shown:
        level = int(data["place"].split("level ")[1].split(",")[0])
        counted = next(episode for episode in by_title[data["agent"]] if episode.level == level)
        assert len(data["steps"]) == counted.length and data["solved"] == counted.solved
