"""Measure training speed: the environment alone, each phase of one learner, and several learners side by side."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import date
from itertools import chain

import numpy as np
import torch

from expgen.algorithms.recipes import recipe_of
from expgen.bench.arithmetic import flops_per_step, peak_flops
from expgen.bench.load import LearnerClock, LoadMonitor, synchronize
from expgen.bench.speed import PEAK, UPDATE_PEAK, Speed, rate
from expgen.envs.make import build_env
from expgen.fast.fast_networks import recorded_forward
from expgen.networks.actor_critic import fresh_network
from expgen.provenance import commit
from expgen.runs.config import TrainConfig
from expgen.runs.plan import build_learner, first_plans, plans_of
from expgen.training.learner import Learner, Phase
from expgen.training.pipeline import LocalPermits, run_pipeline
from expgen.training.resources import Resources, available_cores, hardware, plan_resources

FORWARD_BATCHES = (32, 320, 4096)  # environments of one learner and of ten, and a large batch


def bench(
    config: TrainConfig, learner_counts: list[int], seconds: float, device: str, say: Callable[[str], None]
) -> Iterator[Speed]:
    """Yield each figure as it is measured, over about `seconds` after a warm-up.

    `say` is called with lines about where a learner's time goes, the load of the machine and the bottleneck.
    """
    resources = plan_resources(device, 1)

    def row(what: str, learners: int, per_second: float) -> Speed:
        today = date.today().isoformat()
        return Speed(what, config.game, learners, round(per_second), hardware(resources.device), commit(), today)

    yield row("environment", 1, _environment_rate(config, resources, seconds))
    phases, shares = _phase_rates(config, resources, seconds)
    say("time of one learner: " + ", ".join(f"{what} {share:.0%}" for what, share in shares.items()))
    yield row("rollout", 1, phases[Phase.COLLECT])
    yield row("update", 1, phases[Phase.UPDATE])
    for count in learner_counts:
        monitor = LoadMonitor(resources.device)
        trained = training_rate(config, count, plan_resources(device, count), seconds, monitor.restart)
        load = monitor.stop()
        say(f"training, learners {count}: {load.describe(available_cores())}")
        say(f"  bottleneck: {load.bottleneck(available_cores(), shares, resources.device.type == 'cuda')}")
        yield row("training", count, trained)
    peak, flops = peak_flops(resources.device, seconds / 4), flops_per_step(config)
    yield row(PEAK, 1, peak / flops.total)
    yield row(UPDATE_PEAK, 1, peak / flops.learning)
    for batch in FORWARD_BATCHES:
        yield row(f"forward of {batch}", 1, _forward_rate(config, batch, resources, seconds / 4))


def _environment_rate(config: TrainConfig, resources: Resources, seconds: float) -> float:
    """Return steps per second of the environment with random actions."""
    threads = resources.env_threads
    with closing(build_env(config.env, config.train_set, config.envs, config.seed, threads, **config.options)) as env:
        rng = np.random.default_rng(0)
        actions = rng.integers(env.spec.num_actions, size=(64, config.envs), dtype=np.int32)

        def step() -> int:
            for action in actions:
                env.act(action)
                env.observe()
            return actions.size

        return rate(step, seconds)


def _forward_rate(config: TrainConfig, batch: int, resources: Resources, seconds: float) -> float:
    """Return observations per second of the policy's forward pass with batches of `batch`."""
    plan, device = plans_of(config)[0], resources.device
    with closing(build_env(config.env, config.train_set, 1, config.seed, 1, **config.options)) as env:
        spec = env.spec
    recipe = recipe_of(plan.policy.algo)
    policy = fresh_network(
        lambda: recipe.build_policy(spec, plan.policy.network, plan.policy.algorithm), torch.Generator(), device
    )
    policy = policy.eval()
    obs = torch.from_numpy(np.zeros((1, batch, *spec.obs_shape), dtype=spec.obs_dtype)).to(device)
    first = torch.zeros(1, batch, dtype=torch.bool, device=device)
    forward = recorded_forward(policy, (obs, first, torch.zeros(batch, policy.state_size, device=device)))

    def work() -> int:
        for _ in range(8):
            forward()
        synchronize(device)
        return 8 * batch

    with torch.no_grad():
        return rate(work, seconds)


def _phase_rates(
    config: TrainConfig, resources: Resources, seconds: float
) -> tuple[dict[Phase, float], dict[str, float]]:
    """Return steps per second of one learner's rollouts and updates, and the shares of its time by activity."""
    spent = dict.fromkeys((Phase.COLLECT, Phase.UPDATE), 0.0)
    rollouts = 0
    with closing(build_learner(config, plans_of(config)[0], resources)) as learner:
        for _ in learner.iterate():  # warm-up
            pass
        clock = LearnerClock(learner)
        while not rollouts or sum(spent.values()) < seconds:
            last = time.perf_counter()
            for phase in chain(learner.iterate(), [Phase.UPDATE]):  # work after the last yield is update
                now = time.perf_counter()
                spent[Phase.COLLECT if phase is Phase.COLLECT else Phase.UPDATE] += now - last
                last = now
            rollouts += 1
    rates = {phase: rollouts * config.envs * config.rollout_steps / total for phase, total in spent.items()}
    return rates, clock.shares(sum(spent.values()))


def training_rate(
    config: TrainConfig, count: int, resources: Resources, seconds: float, on_begin: Callable[[], None] = lambda: None
) -> float:
    """Return training steps per second of `count` learners in one pipeline; the last of a population is its explorer.

    `on_begin` is called after each learner's warm-up; the measured `seconds` start with the last call.
    """
    began, done = 0.0, 0

    def train(learner: Learner) -> Iterator[Phase]:
        nonlocal began, done
        yield from learner.iterate()  # warm-up
        on_begin()
        began, done = time.perf_counter(), 0  # the last learner to warm up starts the clock
        while not done or time.perf_counter() - began < seconds:
            before = learner.env_steps
            yield from learner.iterate()
            done += learner.env_steps - before

    with open_learners(config, count, resources) as learners:
        run_learners(learners, train, resources)
        return done / (time.perf_counter() - began)


@contextmanager
def open_learners(config: TrainConfig, count: int, resources: Resources) -> Iterator[list[Learner]]:
    """Build the first `count` learners of a run, and close them at the end."""
    with ExitStack() as cleanup:
        learners = []
        for plan in first_plans(config, count):
            learners.append(cleanup.enter_context(closing(build_learner(config, plan, resources))))
        yield learners


def run_learners(learners: list[Learner], train: Callable[[Learner], Iterator[Phase]], resources: Resources) -> None:
    """Run the generator `train` of each learner in one pipeline; raise the first error."""
    generators = {learner.name: train(learner) for learner in learners}
    for error in run_pipeline(generators, LocalPermits(resources.updates_at_once)).values():
        raise error
