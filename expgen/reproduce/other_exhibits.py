"""Exhibits without scores: first frames, an explorer's path, the Hidden Maze (Figures 1, 3, 8); Tables 3 and 6."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy import ndarray

from expgen.agents.agent import Agent
from expgen.agents.build import build_agent
from expgen.envs.make import build_env
from expgen.envs.procgen import HIDDEN_OPTIONS
from expgen.errors import InputError
from expgen.evaluation.normalize import CONSTANTS
from expgen.paper import numbers
from expgen.report.score_sections import FIVE_GAMES
from expgen.report.section import Section
from expgen.report.style import WIDTH, figure_style
from expgen.report.tables import Table, number_cell
from expgen.runs.agent_files import read_agent
from expgen.runs.make_config import make_config
from expgen.storage.location import Location
from expgen.storage.view import local_copy

LEVEL = 1001  # unseen: training levels are 0 to 199
SHOWN = 6  # frames of the Hidden Maze


def other_sections(names: Sequence[str], explorer: Location | None) -> tuple[list[Section], list[str]]:
    """Return the sections of the exhibits in `names`, and an error line for each that fails.

    explorer: the run that Figure 3 shows.
    """
    makers = {
        "figure-1": games_section,
        "figure-3": lambda: explorer_section(explorer),
        "figure-8": hidden_section,
        "table-3": constants_section,
        "table-6": ppo_section,
    }
    sections, errors = [], []
    for name, make in makers.items():
        if name in names:
            try:
                sections.append(make())
            except InputError as error:
                errors.append(f"{name}: {error}")
    return sections, errors


def games_section() -> Section:
    """Return Figure 1: the first frame of one level of several games."""
    shown = {game: first_frame(f"procgen:{game}") for game in FIVE_GAMES}
    shown["hidden maze"] = first_frame("procgen:maze", hidden=True)
    shown["minimaze"] = first_frame("minimaze")
    words = f"First frames of {', '.join(shown)}"
    return Section("figure-1", f"Level {LEVEL}, as an agent sees it.", figures=[(words, film_strip(shown))])


def first_frame(env_name: str, **options: Any) -> ndarray:
    """Return the first frame of LEVEL, `[H, W, 3]` uint8."""
    with closing(build_env(env_name, f"{LEVEL}:1", 1, **options)) as env:
        return env.observe().obs[0].copy()


def explorer_section(run: Location | None) -> Section:
    """Return Figure 3: the step at which each pixel first changed, over the first frame."""
    if run is None:
        raise InputError("no explorer is trained for it; accepted with --games: maze, for one")
    agent = read_agent(local_copy(run))
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
    return Section("figure-3", note, figures=[(words, figure)])


def play_frames(agent: Agent, env_name: str, max_steps: int = 500) -> ndarray:
    """Play one episode; return its frames `[steps, H, W, 3]`."""
    frames: list[ndarray] = []
    with closing(build_env(env_name, f"{LEVEL}:1", 1, full_view=True)) as env:
        for _ in range(max_steps):
            seen = env.observe()
            if seen.first[0] and frames:
                break
            frames.append(seen.full[0].copy())
            env.act(agent.act(seen.obs, seen.first))
    return np.stack(frames)


def first_change(frames: ndarray) -> ndarray:
    """Return the step `[H, W]` at which each pixel first differs from the first frame; NaN if it never does."""
    changed = (frames != frames[:1]).any(axis=-1)  # [steps, H, W]
    when = changed.argmax(axis=0).astype(float)
    when[~changed.any(axis=0)] = np.nan
    return when


def hidden_section() -> Section:
    """Return Figure 8: a random walk as the agent sees it, and with the maze visible."""
    note = "First the frames that an agent sees in a Hidden Maze on a random walk, then the maze itself."
    figures = []
    for words, options in (("Frames of a Hidden Maze", {"hidden": True}), ("The maze behind them", HIDDEN_OPTIONS)):
        shown: dict[str, ndarray] = {}
        actions = np.random.default_rng(0).integers(15, size=(60, 1), dtype=np.int32)
        with closing(build_env("procgen:maze", f"{LEVEL}:1", 1, **options)) as env:
            for step, action in enumerate(actions):
                frame = env.observe().obs[0]
                if step % (len(actions) // SHOWN) == 0:
                    shown[f"t = {step}"] = frame.copy()
                env.act(action)
            env.observe()  # wait for the last step
        figures.append((words, film_strip(shown)))
    return Section("figure-8", note, figures=figures)


def film_strip(pictures: dict[str, ndarray]) -> Figure:
    """Return a figure of pictures with titles, three per row."""
    rows = -(-len(pictures) // 3)
    with figure_style():
        figure = Figure(figsize=(WIDTH, 1.5 * rows))
        grid = figure.subplots(rows, 3, squeeze=False).flat
        for (name, picture), axes in zip(pictures.items(), grid):
            axes.imshow(picture, interpolation="nearest")
            axes.set_title(name)
        for axes in figure.axes:
            axes.set_axis_off()
    return figure


def constants_section() -> Section:
    """Return Table 3: the normalisation constants."""
    table = Table("table-3", "R_min and R_max in use.", ("game", "easy min", "easy max", "hard min", "hard max"))
    for game in numbers.games():
        bounds = (*CONSTANTS["easy"][game], *CONSTANTS["hard"][game])
        table.add(game, *(number_cell(value, 1) for value in bounds))
    return Section("table-3", "`--constants rliable` takes the hard minima for Jumper and Leaper.", [table])


def ppo_section() -> Section:
    """Return Table 6 from the config of `expgen train maze`."""
    ppo, explorer = (make_config("procgen:maze", algo, "paper") for algo in ("ppo", "maxent"))
    table = Table("table-6", "PPO's settings, ours on ProcGen's Maze and the paper's.", ("setting", "ours", "paper"))
    for row in numbers.rows("ppo_hyperparameters"):
        if row["ours"]:  # our configs have it
            ours = row["ours"].format(ppo=ppo, explorer=explorer)
            table.add(row["parameter"].replace("_", " "), ours, row["paper_value"])
    return Section("table-6", "Where paper and original code differ: docs/how-expgen-works.md.", [table])
