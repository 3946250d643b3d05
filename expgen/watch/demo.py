"""The demo of `make demo`: a bundled population and its parts on unseen levels, as a table and as a page."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from markupsafe import Markup

from expgen.agents.agent import Agent, UniformAgent
from expgen.agents.build import build_agent
from expgen.agents.description import EXPLORER
from expgen.envs.levels import LevelSet
from expgen.envs.library import is_installed
from expgen.evaluation.evaluate import Evaluation, arena_of, play_levels, result_of
from expgen.html import render
from expgen.paper.numbers import ablation, scores
from expgen.runs.shipped import bundled_agents, find_agent
from expgen.watch.page import player, player_group
from expgen.watch.record import record_episode
from expgen.watch.stage import open_stage

PPO, EXPGEN, EXPLORING, RANDOM = "one PPO policy", "ExpGen", "the explorer", "random actions"
ENSEMBLE, OPEN_END = "ensemble + random actions", "our explorers alone"


class DemoResult(NamedTuple):
    """One agent and its evaluation."""

    title: str
    agent: Agent
    evaluation: Evaluation
    paper: float | None  # the paper's mean return, if it has one


def demo_game() -> str:
    """Return `maze` if the ProcGen library is installed, else `minimaze`."""
    return "maze" if is_installed() and "maze/expgen" in bundled_agents() else "minimaze"


def demo_results(game: str, episodes: int, num_envs: int = 64) -> Iterator[DemoResult]:
    """Evaluate every agent of the demo on the same unseen levels."""
    expgen = find_agent(f"{game}/expgen").agent
    agents: dict[str, Agent] = {
        RANDOM: UniformAgent(expgen.spec.num_actions),
        PPO: build_agent(expgen, expgen.leader).agent,
        ENSEMBLE: build_agent(expgen, changes={"fallback": "random"}).agent,
        EXPLORING: build_agent(expgen, EXPLORER).agent,
        EXPGEN: build_agent(expgen).agent,
    }
    if f"{game}/best" in bundled_agents():
        agents[OPEN_END] = build_agent(find_agent(f"{game}/best").agent).agent
    arena = arena_of(expgen, episodes, envs=num_envs)
    for title, agent in agents.items():
        evaluation = result_of(play_levels(agent, arena, expgen.test_set))
        yield DemoResult(title, agent, evaluation, _paper_return(game, title))


def demo_page(game: str, results: Sequence[DemoResult]) -> str:
    """Return a page with the scores and with pairs of agents that play the same level, with different outcomes."""
    by_title = {result.title: result for result in results}
    pairs: list[dict[str, str]] = []
    for heading, left, right, left_solved, right_solved in (
        ("ExpGen solves it, PPO does not", PPO, EXPGEN, (False,), True),
        ("ExpGen does not solve it", PPO, EXPGEN, (False, True), False),
        ("the paper's explorer visits everything but the goal, ours reaches it", EXPLORING, OPEN_END, (False,), True),
    ):
        if right not in by_title:
            continue
        both = by_title[left], by_title[right]
        episodes = zip(*(result.evaluation.episodes for result in both), strict=True)
        for number, (one, other) in enumerate(episodes):
            if one.solved in left_solved and other.solved == right_solved:
                players = [_replay(game, result, number) for result in both]
                group = player_group(players, autoplay=not pairs)
                pairs.append({"heading": f"Level {one.level}: {heading} (the first such level)", "group": group})
                break
    return render(
        "watch/demo.html",
        title=f"expgen on {game}",
        game=game,
        pairs=pairs,
        episodes=len(by_title[EXPGEN].evaluation.episodes),
        results=results,
        has_paper=any(result.paper is not None for result in results),
        has_open_end=OPEN_END in by_title,
        explorer_is_below_random=by_title[EXPLORING].evaluation.mean_return < by_title[RANDOM].evaluation.mean_return,
    )


def _replay(game: str, result: DemoResult, number: int) -> Markup:
    """Play episode `number` of an evaluation again and return its player."""
    expgen = find_agent(f"{game}/expgen").agent
    level = result.evaluation.episodes[number].level
    stage = open_stage(expgen.env, LevelSet((level,)), **expgen.options)
    with closing(stage.env):
        return player(record_episode(result.agent, stage, result.title, 0, "test", level, number))


def _paper_return(game: str, title: str) -> float | None:
    cell = scores("test").get(({PPO: "ppo", EXPGEN: "expgen"}.get(title, ""), game))
    if title == ENSEMBLE and game == "maze":
        cell = ablation()["Ensemble + random", "test"]
    return cell.mean if cell else None
