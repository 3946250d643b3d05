"""The demo's story: everyone on the same unseen levels, and a page that shows the very episodes that were counted."""

import json
import re

import pytest

from expgen.watch.page import players_in
from expgen.watch.story import EXPGEN, EXPLORING, OPEN_END, PPO, Chapter, story_page, tell


@pytest.fixture(scope="module")
def chapters() -> list[Chapter]:
    return list(tell("minimaze", 40, num_envs=20))


def test_everyone_plays_the_same_levels(chapters: list[Chapter]) -> None:
    assert [chapter.title for chapter in chapters][1::3] == [PPO, EXPGEN]
    levels = [[episode.level for episode in chapter.evaluation.episodes] for chapter in chapters]
    assert all(own == levels[0] for own in levels) and len(levels[0]) == 40
    assert min(levels[0]) >= 200  # none of the training levels


def test_the_page_shows_the_episodes_that_were_counted(chapters: list[Chapter]) -> None:
    page = story_page("minimaze", chapters)
    shown = [json.loads(re.findall(r"json\">(.*?)</script>", text)[0]) for text in players_in(page)]
    assert [data["agent"] for data in shown] == [PPO, EXPGEN, PPO, EXPGEN, EXPLORING, OPEN_END]
    by_title = {chapter.title: chapter.evaluation.episodes for chapter in chapters}
    for data in shown:
        level = int(data["place"].split("level ")[1].split(",")[0])
        counted = next(episode for episode in by_title[data["agent"]] if episode.level == level)
        assert len(data["steps"]) == counted.length and data["solved"] == counted.solved
