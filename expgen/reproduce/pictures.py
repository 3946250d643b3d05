"""Exhibits without scores: how games look (Figure 1), an explorer's way (Figure 3), the Hidden Maze (Figure 8)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy import ndarray

from expgen.agents.agent import Agent
from expgen.agents.build import build_agent
from expgen.envs.make import build_env
from expgen.envs.procgen import HIDDEN_OPTIONS
from expgen.errors import InputError
from expgen.report.score_sections import FIVE_GAMES
from expgen.report.section import Section
from expgen.report.style import WIDTH, figure_style
from expgen.runs.agent_files import read_agent
from expgen.storage.location import Location
from expgen.storage.view import local_copy

LEVEL = 1001  # unseen by everything trained on levels 0 to 199
SHOWN = 6  # frames of the Hidden Maze's walk


def picture_sections(names: Sequence[str], explorer: Location | None) -> tuple[list[Section], list[str]]:
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
    return Section("figure-1", f"Level {LEVEL}, as an agent sees it.", figures=((words, film_strip(shown)),))


def first_frame(env_name: str, **options: Any) -> ndarray:
    """`[H, W, 3]` uint8."""
    env = build_env(env_name, str(LEVEL) + ":1", 1, **options)
    try:
        return env.observe().obs[0].copy()
    finally:
        env.close()


def explorer_section(run: Location | None) -> Section:
    """Figure 3: when each pixel first changed, over the level as it was."""
    agent = read_agent(local_copy(run or ""))
    frames = play_frames(build_agent(agent).agent, agent.env)
    with figure_style():
        figure = Figure(figsize=(WIDTH, 6.4))
        top, bottom = figure.subplots(2, 1)
        top.imshow(frames[0])
        bottom.imshow(frames[0].mean(axis=2), cmap="gray", alpha=0.35)
        when = first_change(frames)
        drawn = bottom.imshow(when, cmap="viridis", interpolation="nearest")
        figure.colorbar(drawn, ax=bottom, label="step of the first change")
        for axes, title in ((top, "the level"), (bottom, "where the explorer went, and when")):
            axes.set_title(title)
            axes.set_axis_off()
    words = f"An explorer's way through level {LEVEL} of {agent.game}, coloured by time"
    note = f"Level {LEVEL} of {agent.game}, unseen in training; one episode of {len(frames)} frames."
    return Section("figure-3", note, figures=((words, figure),))


def play_frames(agent: Agent, env_name: str, most: int = 500) -> ndarray:
    """The frames of one episode, `[steps, H, W, 3]`."""
    env = build_env(env_name, f"{LEVEL}:1", 1, full_view=True)
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
        build_env("procgen:maze", f"{LEVEL}:1", 1, **options) for options in ({"hidden": True}, dict(HIDDEN_OPTIONS))
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
    note = "First what the agent sees of a Hidden Maze on a random walk, then what is there."
    words = ("Frames of a Hidden Maze", "The maze behind them")
    return Section("figure-8", note, figures=tuple((word, film_strip(row)) for word, row in zip(words, rows)))


def film_strip(pictures: dict[str, ndarray], columns: int = 3) -> Figure:
    """Pictures side by side under their names, so many to a row."""
    rows = -(-len(pictures) // columns)
    with figure_style():
        figure = Figure(figsize=(WIDTH, 1.5 * rows))
        grid = figure.subplots(rows, columns, squeeze=False).flat
        for (name, picture), axes in zip(pictures.items(), grid):
            axes.imshow(picture, interpolation="nearest")
            axes.set_title(name)
        for axes in figure.axes:
            axes.set_axis_off()
    return figure
