"""How long jobs would take here: their steps, at the rate of PPO and of the explorer measured for a moment."""

from collections.abc import Iterable
from typing import NamedTuple

from expgen.errors import InputError
from expgen.experiments.bench import training_rate
from expgen.experiments.plan import plans_of
from expgen.experiments.run import make_config
from expgen.reproduce.job import Job
from expgen.training.resources import plan_resources

SECONDS = 1.0  # of work behind each rate


class Effort(NamedTuple):
    """What jobs add up to."""

    jobs: int
    steps: int
    hours: float | None  # None where a rate could not be measured
    refused: tuple[str, ...]  # why jobs cannot run


class Estimator:
    """Measures each kind of training once."""

    def __init__(self, device: str = "auto") -> None:
        self.device = device
        self.rates: dict[tuple[str, bool], float | None] = {}

    def effort(self, jobs: Iterable[Job]) -> Effort:
        """Steps and hours of training; playing for scores comes on top. Rivals are taken to cost what PPO costs."""
        count, steps, hours, is_known = 0, 0, 0.0, True
        refused: dict[str, None] = {}
        for job in jobs:
            count += 1
            if job.adopt:
                continue  # trained elsewhere
            try:
                config = make_config(job.env, job.algo, job.preset, **job.settings)
            except InputError as error:
                refused[str(error)] = None
                continue
            for plan in plans_of(config):
                steps += plan.steps
                rate = self.rate(job.env, plan.network.memory != "none")
                is_known = is_known and rate is not None
                hours += plan.steps / rate / 3600 if rate else 0.0
        return Effort(count, steps, hours if is_known else None, tuple(refused))

    def rate(self, env: str, has_memory: bool) -> float | None:
        """Steps a second; None where the environment cannot be had."""
        family = env.partition(":")[0]
        if (family, has_memory) not in self.rates:
            try:
                self.rates[family, has_memory] = self._measure(family, "maxent" if has_memory else "ppo")
            except InputError:
                self.rates[family, has_memory] = None
        return self.rates[family, has_memory]

    def _measure(self, family: str, algo: str) -> float:
        resources = plan_resources(self.device, 1)
        on_gpu = resources.device.type == "cuda"
        env = "procgen:maze" if family == "procgen" else family
        if family == "minimaze" or on_gpu:
            config = make_config(env, algo, "laptop" if family == "minimaze" else "paper")
        else:  # large networks on a CPU: a small rollout tells as much
            config = make_config(env, algo, "smoke", rollout_steps=16)
        return training_rate(config, 1, resources, SECONDS)
