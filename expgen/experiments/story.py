"""The paper's story in one table: a bundled population on unseen levels, first in parts, then as a whole."""

from collections.abc import Iterator
from typing import NamedTuple

from expgen.agents.agent import Agent, UniformAgent
from expgen.envs.make import make_env
from expgen.evaluation.evaluate import Evaluation, evaluate
from expgen.experiments.config import EXPLORER
from expgen.experiments.load import load_run
from expgen.experiments.pretrained import find_run
from expgen.training.resources import plan_resources


class Chapter(NamedTuple):
    """One agent and how it did."""

    title: str
    evaluation: Evaluation


def tell(game: str = "minimaze", episodes: int = 500, num_envs: int = 64) -> Iterator[Chapter]:
    """Everyone plays the same levels, none of which anyone has trained on."""
    folder = find_run(f"{game}/expgen").folder
    config, spec = folder.read_config()
    leader = f"member{config.consensus.leader if config.consensus else 0}"
    cast: dict[str, Agent] = {
        "random actions": UniformAgent(spec.num_actions),
        "one PPO policy": load_run(folder, leader).agent,
        "ensemble + random actions": load_run(folder, consensus={"fallback": "random"}).agent,
        "the explorer": load_run(folder, EXPLORER).agent,
        "ExpGen": load_run(folder).agent,
    }
    threads = plan_resources("cpu", 1).env_threads
    for title, agent in cast.items():
        env = make_env(config.env, config.test_set, min(num_envs, episodes), threads=threads, **config.options)
        try:
            yield Chapter(title, evaluate(agent, env, episodes))
        finally:
            env.close()
