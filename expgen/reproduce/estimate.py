"""Estimate the training time of jobs on this machine from the measured rates of PPO and of the explorer.

The other algorithms are estimated as PPO's rate times BESIDE_PPO.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from expgen.bench.bench import training_rate
from expgen.errors import InputError
from expgen.reproduce.job import Job
from expgen.runs.make_config import make_config
from expgen.runs.plan import plans_of
from expgen.training.resources import plan_resources

# Training steps/s of one learner on one H200, relative to PPO's in the same session (Maze, the paper's settings).
# Algorithms that are not listed are PPO with another reward or network: 1.
BESIDE_PPO = {
    "ppo": 1.0,
    "plr": 41_956 / 41_039,
    "ucb-drac": 35_514 / 41_039,
    "idaac": 24_715 / 41_039,
    "leep": 22_811 / 41_039,
    "daac": 24_715 / 41_039,  # IDAAC's, nearly the same work; not measured
    "ppg": 18_839 / 49_525,  # over 31 rollouts and the auxiliary phase after them
}
SECONDS = 1.0  # of each measurement


class Effort(NamedTuple):
    """Total cost of a list of jobs."""

    jobs: int
    steps: int
    hours: float | None  # None if a rate could not be measured
    refused: tuple[str, ...]  # why jobs cannot run


class Estimator:
    """Estimates training time; measures each combination of environment and network once."""

    def __init__(self, device: str = "auto") -> None:
        self.device = device
        self.rates: dict[tuple[str, bool], float] = {}

    def effort(self, jobs: Sequence[Job]) -> Effort:
        """Return the steps and hours of training, without evaluation."""
        steps, hours = 0, 0.0
        refused: dict[str, None] = {}
        trained: dict[tuple[str, str], int] = {}  # steps of each policy, by job and algorithm
        for job in jobs:
            if job.made_of:
                continue  # composed of other jobs' policies
            try:
                config = make_config(job.env, job.algo, job.preset, **job.settings)
            except InputError as error:
                refused[str(error)] = None
                continue
            for plan in plans_of(config):
                trained[job.name, plan.policy.algo] = plan.steps
                left = plan.steps - trained.get((job.continues, plan.policy.algo), 0)
                if left > 0:
                    steps += left
                    hours += left / self.rate(job.env, plan.policy.algo, plan.policy.network.memory != "none") / 3600
        return Effort(len(jobs), steps, None if math.isnan(hours) else hours, tuple(refused))

    def rate(self, env: str, algo: str, has_memory: bool) -> float:
        """Return training steps per second of `algo`; nan if the environment is not available."""
        key = env.partition(":")[0], has_memory
        if key not in self.rates:
            self.rates[key] = self._measure(*key)
        return self.rates[key] * BESIDE_PPO.get(algo, 1.0)

    def _measure(self, family: str, has_memory: bool) -> float:
        """Measure training steps per second of the explorer (with memory) or of PPO."""
        resources = plan_resources(self.device, 1)
        env, algo = "procgen:maze" if family == "procgen" else family, "maxent" if has_memory else "ppo"
        try:
            if family == "minimaze" or resources.device.type == "cuda":
                config = make_config(env, algo, "laptop" if family == "minimaze" else "paper")
            else:  # large networks on a CPU: a short rollout is enough
                config = make_config(env, algo, "smoke", rollout_steps=16)
            return training_rate(config, 1, resources, SECONDS)
        except InputError:
            return math.nan
