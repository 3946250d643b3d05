"""Exhibits without scores."""

import numpy as np
import pytest

from expgen.agents.agent import UniformAgent
from expgen.reproduce.other_exhibits import first_change, other_sections, play_frames


def test_first_change_of_each_pixel_by_hand():
    frames = np.zeros((4, 2, 2, 3), np.uint8)
    frames[2:, 0, 0] = 9
    frames[1, 1, 1] = 9
    np.testing.assert_array_equal(first_change(frames), [[2, np.nan], [np.nan, 1]])


def test_play_frames_returns_one_episode():
    frames = play_frames(UniformAgent(5), "minimaze", max_steps=10)
    assert 1 < len(frames) <= 10 and frames.dtype == np.uint8 and (frames[0] != frames[-1]).any()


def test_figure_without_its_run_is_an_error(tmp_path):
    sections, complaints = other_sections(["figure-3"], tmp_path)
    assert sections == [] and len(complaints) == 1 and complaints[0].startswith("figure-3: ")
    assert other_sections(["figure-3"], None)[1] == [
        "figure-3: no explorer is trained for it; accepted with --games: maze, for one"
    ]


def test_table_6_shows_our_settings_beside_the_papers():
    (section,), complaints = other_sections(["table-6"], None)
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in section.tables[0].rows}
    assert complaints == [] and len(rows) == 13
    assert rows["gae lambda"] == ["0.95", "0.95"] and rows["k nn"] == ["2", "2"]
    assert rows["gamma"] == ["0.999 (explorer on Maze: 0.9)", "0.999"]
    assert rows["total timesteps"] == ["25,000,000 (explorer: 100,000,000)", "25M"]


@pytest.mark.procgen
def test_figures_1_and_8_are_drawn():
    sections, complaints = other_sections(["figure-1", "figure-8"], None)
    assert complaints == [] and [section.name for section in sections] == ["figure-1", "figure-8"]
    assert sum(len(axes.images) for axes in sections[0].figures[0][1].axes) == 7
    hidden, bare = (figure.axes[0].images[0].get_array() for _, figure in sections[1].figures)
    assert (hidden != bare).any() and len(np.unique(hidden.reshape(-1, 3), axis=0)) == 2  # wall and agent
