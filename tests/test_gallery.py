"""docs/gallery.md shows the scores and a video of every bundled agent."""

import runpy
from pathlib import Path

import pytest

from expgen.runs.shipped import bundled_agents

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script() -> dict:
    return runpy.run_path(str(ROOT / "scripts" / "draw-films"))


def test_gallery_page_matches_its_script(script: dict) -> None:
    page = (ROOT / "docs" / "gallery.md").read_text()
    assert page == script["gallery_page"](), "scores or agents have changed: scripts/draw-films --page"
    for name, agent in bundled_agents().items():
        assert f"## {name}\n" in page and f"**{agent.scores['test'].mean_return:.2f}**" in page


def test_every_bundled_agent_has_a_video_of_an_unseen_level(script: dict) -> None:
    for name in bundled_agents():
        film = script["film_of"](name)
        assert film.read_bytes().startswith(b"GIF89a"), f"scripts/draw-films {name}"
        assert script["level_of"](name) not in range(200), name
        assert film.stat().st_size < 400_000
    assert {path.name for path in (ROOT / "docs/pictures/gallery").iterdir()} == {
        script["film_of"](name).name for name in bundled_agents()
    }
