"""python benchmarks/scale_model.py: estimate the hours of the paper's Table 1 for a number of GPUs.

The model is r(n) = R n / (n + h) steps per second for n PPO learners side by side, fitted to the measured r(1) and
r(11); an explorer alone runs at its own measured rate. Other algorithms are slower than PPO by the factor measured for
one learner (`BESIDE_PPO`), which overestimates their time where the games are the bottleneck. Scoring is left out.
"""

import heapq
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from expgen.reproduce.estimate import BESIDE_PPO
from expgen.reproduce.job import Job
from expgen.reproduce.jobs import jobs_of
from expgen.reproduce.scale import SCALES
from expgen.runs.make_config import make_config
from expgen.runs.plan import plans_of

ONE, ELEVEN, FIVE = 49_500, 92_600, 93_900  # PPO on an H200 with 16 cores; FIVE is to check the model
EXPLORER = 31_800
HALF = 11 * (ELEVEN - ONE) / (11 * ONE - ELEVEN)  # h
LIMIT = ONE * (1 + HALF)  # R


def rate(learners: int) -> float:
    """Return the total steps per second of `learners` PPO learners."""
    return LIMIT * learners / (learners + HALF)


def hours(job: Job) -> float:
    """Return the hours to train `job`; its learners run side by side and end at their own number of steps."""
    if job.made_of:
        return 0.0
    plans = plans_of(make_config(job.env, job.algo, job.preset, **job.settings))
    left, seconds = sorted((plan.steps, plan.policy.algo) for plan in plans), 0.0
    slower = 1 / BESIDE_PPO.get(plans[0].policy.algo, 1.0)
    done = 0
    while left:
        steps, algo = left[0]
        alone = EXPLORER if len(left) == 1 and algo == "maxent" else rate(len(left))
        seconds += slower * (steps - done) * len(left) / alone
        done = steps
        left = [plan for plan in left if plan[0] > steps]
    return seconds / 3600


def makespan(durations: list[float], gpus: int) -> float:
    """Return the hours until all are done, if the longest start first, each on the next free GPU."""
    ends = [0.0] * gpus
    for duration in sorted(durations, reverse=True):
        heapq.heappushpop(ends, ends[0] + duration)
    return max(ends)


def main() -> None:
    jobs = jobs_of(["table-1"], SCALES["paper"])
    durations = [hours(job) for job in jobs]
    print(f"R = {LIMIT:,.0f} steps/s, h = {HALF:.2f}; five learners: {rate(5):,.0f} predicted, {FIVE:,} measured")
    for job, duration in list(zip(jobs, durations, strict=True))[:8]:
        print(f"  {job.name:<22} {duration:.2f} h")
    print(f"{len(jobs)} jobs, {sum(durations):.1f} GPU hours")
    for gpus in (1, 2, 4, 8, 16, 32, 64, 128):
        span = makespan(durations, gpus)
        print(f"{gpus:>4} GPUs  {span:6.2f} h  efficiency {sum(durations) / gpus / span:.0%}")


if __name__ == "__main__":
    main()
