"""Which worker process trains which learners: as evenly as their costs allow."""

from collections.abc import Mapping
from typing import TypeVar

from expgen.runs.plan import LearnerPlan

Who = TypeVar("Who")

MEMORY_COST = 2.0  # a step with memory, in steps without: sequences of 512 leave the device waiting


def cost_of(plan: LearnerPlan, env_steps: int) -> float:
    """What is left to do for a learner that has come to `env_steps`."""
    left = max(0, plan.steps - env_steps)
    return left * (1.0 if plan.network.memory == "none" else MEMORY_COST)


def spread(costs: Mapping[Who, float], num_workers: int) -> list[list[Who]]:
    """Whose learners each worker trains: the dearest first, each to the worker with the least to do so far."""
    shares: list[list[Who]] = [[] for _ in range(num_workers)]
    loads = [0.0] * num_workers
    for who in sorted(costs, key=lambda who: -costs[who]):
        least = loads.index(min(loads))
        shares[least].append(who)
        loads[least] += costs[who]
    return [share for share in shares if share]
