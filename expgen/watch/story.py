"""The paper's story in one table and one page: a bundled population on unseen levels, in parts and as a whole."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from markupsafe import Markup

from expgen.agents.agent import Agent, UniformAgent
from expgen.agents.build import build_agent
from expgen.agents.description import EXPLORER
from expgen.envs.levels import LevelSet
from expgen.envs.library import is_installed
from expgen.evaluation.evaluate import Arena, Evaluation, play_levels, result_of
from expgen.html import render
from expgen.paper.numbers import ablation, scores
from expgen.runs.shipped import bundled_agents, find_agent
from expgen.training.resources import plan_resources
from expgen.watch.page import player, player_group
from expgen.watch.record import record_episode
from expgen.watch.stage import open_stage

PPO, EXPGEN, EXPLORING, RANDOM = "one PPO policy", "ExpGen", "the explorer", "random actions"
OPEN_END = "our explorers alone"


class Chapter(NamedTuple):
    """One agent and how it did."""

    title: str
    agent: Agent
    evaluation: Evaluation
    paper: float | None  # its mean return there, where the paper has it


def story_game() -> str:
    """ProcGen's Maze where its library is installed, else the built-in maze."""
    return "maze" if is_installed() and "maze/expgen" in bundled_agents() else "minimaze"


def tell(game: str, episodes: int, num_envs: int = 64) -> Iterator[Chapter]:
    """Everyone plays the same levels, none of which anyone has trained on."""
    found = find_agent(f"{game}/expgen").agent
    leader = f"member{found.consensus.leader if found.consensus else 0}"
    cast: dict[str, Agent] = {
        RANDOM: UniformAgent(found.spec.num_actions),
        PPO: build_agent(found, leader).agent,
        "ensemble + random actions": build_agent(found, changes={"fallback": "random"}).agent,
        EXPLORING: build_agent(found, EXPLORER).agent,
        EXPGEN: build_agent(found).agent,
    }
    if f"{game}/best" in bundled_agents():
        cast[OPEN_END] = build_agent(find_agent(f"{game}/best").agent).agent
    threads = plan_resources("cpu", 1).env_threads
    arena = Arena(found.env, found.options, episodes, max_envs=num_envs, threads=threads)
    for title, agent in cast.items():
        yield Chapter(title, agent, result_of(play_levels(agent, arena, found.test_set)), _in_paper(game, title))


def story_page(game: str, chapters: Sequence[Chapter]) -> str:
    """Pairs of agents on the same level, the first on which they differ as the heading says, and everyone's scores."""
    by_title = {chapter.title: chapter for chapter in chapters}
    expgen = by_title[EXPGEN]
    pairs: list[dict[str, str]] = []
    for heading, left, right, solved_on_the_left, solved_on_the_right in (
        ("ExpGen solves it, PPO does not", PPO, EXPGEN, False, True),
        ("ExpGen does not solve it", PPO, EXPGEN, None, False),
        ("the paper's explorer goes everywhere but to the goal, ours takes it", EXPLORING, OPEN_END, False, True),
    ):
        both = [by_title[title] for title in (left, right) if title in by_title]
        for k, (one, *other) in enumerate(zip(*(chapter.evaluation.episodes for chapter in both), strict=True)):
            if other and other[0].solved == solved_on_the_right and solved_on_the_left in (None, one.solved):
                players = [_replayed(game, chapter, k) for chapter in both]
                group = player_group(players, autoplay=not pairs)
                pairs.append({"heading": f"Level {one.level}: {heading} (the first such level)", "group": group})
                break
    return render(
        "watch/story.html",
        title=f"expgen on {game}",
        game=game,
        pairs=pairs,
        episodes=len(expgen.evaluation.episodes),
        chapters=chapters,
        has_paper=any(chapter.paper is not None for chapter in chapters),
        has_open_end=OPEN_END in by_title,
        explorer_is_below_random=by_title[EXPLORING].evaluation.mean_return < by_title[RANDOM].evaluation.mean_return,
    )


def _replayed(game: str, chapter: Chapter, number: int) -> Markup:
    """The very episode that was counted, once more to be watched."""
    found = find_agent(f"{game}/expgen").agent
    level = chapter.evaluation.episodes[number].level
    stage = open_stage(found.env, LevelSet((level,)), **found.options)
    with closing(stage.env):
        return player(record_episode(chapter.agent, stage, chapter.title, 0, "test", level, number))


def _in_paper(game: str, title: str) -> float | None:
    cell = scores("test").get(({PPO: "ppo", EXPGEN: "expgen"}.get(title, ""), game))
    if title == "ensemble + random actions" and game == "maze":
        cell = ablation()["Ensemble + random", "test"]
    return cell.mean if cell else None
