"""expgen: agents that play levels they have never seen (Explore to Generalize in Zero-Shot RL, NeurIPS 2023)."""

import importlib
import os
from typing import TYPE_CHECKING, Any

from expgen.envs.gymnasium_ids import register_with_gymnasium

if TYPE_CHECKING:
    from expgen.agents.external import consensus_agent
    from expgen.agents.sb3 import from_sb3
    from expgen.diagnosis.diagnose import Diagnosis, diagnose
    from expgen.envs.gymnasium_vector import GymnasiumVectorEnv
    from expgen.envs.levels import LevelSet
    from expgen.envs.make import make_env
    from expgen.envs.own_env import register_env
    from expgen.envs.sb3_env import Sb3VecEnv as Sb3VecEnv
    from expgen.errors import InputError
    from expgen.evaluation.evaluate import Evaluation, evaluate
    from expgen.reward.gymnasium_wrappers import KnnRewardVectorWrapper, KnnRewardWrapper
    from expgen.reward.knn import KnnConfig
    from expgen.reward.knn_step import KnnStepReward
    from expgen.runs.register import register
    from expgen.runs.shipped import load_agent
    from expgen.runs.train import RunResult, train
    from expgen.training.callbacks import Callback

if "OMP_WAIT_POLICY" not in os.environ:  # read when torch loads; threads that spin for long slow down other processes
    os.environ["OMP_WAIT_POLICY"] = "passive"
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # a moment; without, small operations take up to twice as long

__all__ = [
    "Callback", "Diagnosis", "Evaluation", "GymnasiumVectorEnv", "InputError", "KnnConfig", "KnnRewardVectorWrapper",
    "KnnRewardWrapper", "KnnStepReward", "LevelSet", "RunResult", "consensus_agent", "diagnose", "evaluate", "from_sb3",
    "load_agent", "make_env", "register", "register_env", "train",
]  # fmt: skip

_MODULES = {  # module of each public name, imported on first access so that `expgen --help` does not load torch
    "Callback": "expgen.training.callbacks",
    "Diagnosis": "expgen.diagnosis.diagnose",
    "Evaluation": "expgen.evaluation.evaluate",
    "GymnasiumVectorEnv": "expgen.envs.gymnasium_vector",
    "InputError": "expgen.errors",
    "KnnConfig": "expgen.reward.knn",
    "KnnRewardVectorWrapper": "expgen.reward.gymnasium_wrappers",
    "KnnRewardWrapper": "expgen.reward.gymnasium_wrappers",
    "KnnStepReward": "expgen.reward.knn_step",
    "LevelSet": "expgen.envs.levels",
    "RunResult": "expgen.runs.train",
    "Sb3VecEnv": "expgen.envs.sb3_env",  # not in __all__: it needs Stable-Baselines3
    "consensus_agent": "expgen.agents.external",
    "diagnose": "expgen.diagnosis.diagnose",
    "evaluate": "expgen.evaluation.evaluate",
    "from_sb3": "expgen.agents.sb3",
    "load_agent": "expgen.runs.shipped",
    "make_env": "expgen.envs.make",
    "register": "expgen.runs.register",
    "register_env": "expgen.envs.own_env",
    "train": "expgen.runs.train",
}

register_with_gymnasium()


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from expgen.provenance import version

        return version().removeprefix("v")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
