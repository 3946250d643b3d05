"""Exhibits without scores: how games look (Figure 1), an explorer's way (Figure 3), the Hidden Maze (Figure 8)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy import ndarray

from expgen.agents.agent import Agent
from expgen.agents.build import build_agent
from expgen.envs.make import make_env
from expgen.envs.procgen import HIDDEN_OPTIONS
from expgen.errors import InputError
from expgen.report.score_sections import FIVE_GAMES
from expgen.report.section import Section
from expgen.report.style import figure_style
from expgen.runs.agent_files import read_agent
from expgen.storage.place import Place
from expgen.storage.view import local_copy

LEVEL = 1001  # unseen by everything trained on levels 0 to 199
SHOWN = 6  # frames of the Hidden Maze's walk


def picture_sections(names: Sequence[str], explorer: Place | None) -> tuple[list[Section], list[str]]:
    """The picture exhibits among `names`, and a line for each that cannot be made here."""
    makers = {"figure-1": games_section, "figure-3": lambda: explorer_section(explorer), "figure-8": hidden_section}
    sections, complaints = [], []
    for name, make in makers.items():
        if name in names:
            try:
                sections.append(make())
            except InputError as error:
                complaints.append(f"{name}: {error}")
    return sections, complaints


def games_section() -> Section:
    """Figure 1: the first frame of a level."""
    shown = {game: first_frame(f"procgen:{game}") for game in FIVE_GAMES}
    shown["hidden maze"] = first_frame("procgen:maze", hidden=True)
    shown["minimaze"] = first_frame("minimaze")
    words = f"First frames of {', '.join(shown)}"
    return Section("figure-1", f"Level {LEVEL}, as an agent sees it.", figures=((words, film_strip([shown])),))


def first_frame(env_name: str, **options: Any) -> ndarray:
    """`[H, W, 3]` uint8."""
    env = make_env(env_name, str(LEVEL) + ":1", 1, **options)
    try:
        return env.observe().obs[0].copy()
    finally:
        env.close()


def explorer_section(run: Place | None) -> Section:
    """Figure 3: when each pixel first changed, over the level as it was."""
    agent = read_agent(local_copy(run or ""))
    frames = play_frames(build_agent(agent).agent, agent.env)
    with figure_style():
        figure = Figure(figsize=(7, 3.2))
        left, right = figure.subplots(1, 2)
        left.imshow(frames[0])
        right.imshow(frames[0].mean(axis=2), cmap="gray", alpha=0.35)
        when = first_change(frames)
        drawn = right.imshow(when, cmap="viridis", interpolation="nearest")
        figure.colorbar(drawn, ax=right, label="step of the first change")
        for axes, title in ((left, "the level"), (right, "where the explorer went, and when")):
            axes.set_title(title, fontsize=9)
            axes.set_axis_off()
    words = f"An explorer's way through level {LEVEL} of {agent.game}, coloured by time"
    note = f"Level {LEVEL} of {agent.game}, unseen in training; one episode of {len(frames)} frames."
    return Section("figure-3", note, figures=((words, figure),))


def play_frames(agent: Agent, env_name: str, most: int = 500) -> ndarray:
    """The frames of one episode, `[steps, H, W, 3]`."""
    env = make_env(env_name, f"{LEVEL}:1", 1, full_view=True)
    frames: list[ndarray] = []
    try:
        for _ in range(most):
            seen = env.observe()
            if seen.first[0] and frames:
                break
            frames.append(seen.full[0].copy())
            env.act(agent.act(seen.obs, seen.first))
    finally:
        env.close()
    return np.stack(frames)


def first_change(frames: ndarray) -> ndarray:
    """The step at which each pixel first differs from the first frame, NaN where it never does: `[H, W]`."""
    changed = (frames != frames[:1]).any(axis=-1)  # [steps, H, W]
    when = changed.argmax(axis=0).astype(float)
    when[~changed.any(axis=0)] = np.nan
    return when


def hidden_section() -> Section:
    """Figure 8: the same random walk seen and unseen."""
    hidden, bare = (
        make_env("procgen:maze", f"{LEVEL}:1", 1, **options) for options in ({"hidden": True}, dict(HIDDEN_OPTIONS))
    )
    rng = np.random.default_rng(0)
    rows: list[dict[str, ndarray]] = [{}, {}]
    try:
        for step in range(60):
            for row, env in zip(rows, (hidden, bare)):
                if step % (60 // SHOWN) == 0:
                    row[f"t = {step}"] = env.observe().obs[0].copy()
            action = rng.integers(15, size=1).astype(np.int32)
            for env in (hidden, bare):
                env.act(action)
                env.observe()
    finally:
        hidden.close()
        bare.close()
    note = "Top: what the agent sees of a Hidden Maze on a random walk. Bottom: what is there."
    return Section("figure-8", note, figures=(("Frames of a Hidden Maze and of the maze behind it", film_strip(rows)),))


def film_strip(rows: Sequence[dict[str, ndarray]]) -> Figure:
    """Pictures side by side under their names."""
    width = max(map(len, rows))
    with figure_style():
        figure = Figure(figsize=(1.55 * width, 1.8 * len(rows)))
        grid = figure.subplots(len(rows), width, squeeze=False)
        for row, axes_row in zip(rows, grid):
            for (name, picture), axes in zip(row.items(), axes_row):
                axes.imshow(picture, interpolation="nearest")
                axes.set_title(name, fontsize=8.5)
                axes.set_axis_off()
    return figure
