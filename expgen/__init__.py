"""expgen: agents that play levels they have never seen (Explore to Generalize in Zero-Shot RL, NeurIPS 2023)."""

from expgen.envs.levels import LevelSet
from expgen.envs.make import make_env
from expgen.errors import InputError
from expgen.evaluation.evaluate import Evaluation, evaluate
from expgen.experiments.load import load_agent
from expgen.experiments.run import RunResult, train

__all__ = ["Evaluation", "InputError", "LevelSet", "RunResult", "evaluate", "load_agent", "make_env", "train"]
