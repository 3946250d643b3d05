"""One policy's whole life, as a generator that gives way whenever work is under way elsewhere."""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from expgen.algorithms.algorithm import Algorithm, HasCritic, KeepsHistory
from expgen.envs.vec_env import Snapshots, VecEnv
from expgen.networks.actor_critic import Policy
from expgen.networks.state import under_prefix, with_prefix
from expgen.provenance import commit
from expgen.reward.source import RewardSource
from expgen.rollout.collect import collect
from expgen.rollout.gae import advantages
from expgen.rollout.level_choice import Director
from expgen.rollout.rollout import Rollout
from expgen.training.accelerate import MINIBATCHES_AHEAD, make_lane, make_learning, mean_of
from expgen.training.checkpoint import Checkpoint, keep_checkpoint
from expgen.training.episodes import EpisodeLog
from expgen.training.stints import Stint

Scores = dict[str, float]
ScorePolicy = Callable[[Policy], Generator[None, None, Scores]]  # plays train and test levels, giving way as it goes
Report = Callable[[str, dict[str, float]], None]  # learner's name, one row of metrics


class Phase(Enum):
    """What a learner is about to do when it is next resumed."""

    COLLECT = "collect"
    READY = "ready"  # has a rollout, wants the device for its update
    UPDATE = "update"


class Diverged(RuntimeError):
    """A loss stopped being a finite number; the checkpoint before it is kept."""


@dataclass(frozen=True)
class Schedule:
    """When a learner stops, saves and is scored, in its own environment steps and seconds."""

    env_steps: int
    eval_every: int  # 0: never
    checkpoint_seconds: float


class Milestone(NamedTuple):
    """A checkpoint that no later one replaces: the first from which steps on, and into which folder."""

    env_steps: int
    folder: Path


class Learner:
    """Owns an environment, an algorithm, a rollout and everything that decides how they go on."""

    def __init__(
        self,
        name: str,
        env: VecEnv,
        algorithm: Algorithm,
        reward: RewardSource,
        rollout: Rollout,
        schedule: Schedule,
        seed: int,
        director: Director | None = None,
    ) -> None:
        self.name, self.env, self.reward, self.rollout = name, env, reward, rollout
        self.schedule, self.director = schedule, director
        self.generator = torch.Generator(rollout.device).manual_seed(seed)
        self.episodes = EpisodeLog(rollout.num_envs)
        self.explored = EpisodeLog(rollout.num_envs)  # the same episodes, paid r_I where there is one
        self.lane = make_lane(algorithm.policy, rollout)
        self.algorithm = make_learning(algorithm, self.lane)
        self.env_steps = self.updates = 0
        self.seconds = 0.0  # spent in earlier sittings and this one
        self.stints: list[Stint] = []

    def run(
        self,
        score: ScorePolicy,
        report: Report,
        folder: Path,
        should_stop: Callable[[], bool],
        milestones: Sequence[Milestone] = (),
    ) -> Iterator[Phase]:
        """Train to the schedule's end or until `should_stop`, then checkpoint. Each yield: come back later."""
        milestones = self._keep(milestones)
        began = saved = time.monotonic()
        before, stints, now = self.seconds, self.stints, time.time()
        while self.env_steps < self.schedule.env_steps and not should_stop():
            row = yield from self.iterate()
            if self._eval_is_due():
                row |= yield from _giving_way(score(self.algorithm.policy))
            self.seconds = before + time.monotonic() - began
            self.stints = [*stints, Stint(now, self.seconds - before, commit())]
            report(self.name, {"env_steps": self.env_steps, "seconds": self.seconds, **row})
            milestones = self._keep(milestones)  # before any checkpoint that a resumed run would go on from
            if time.monotonic() - saved >= self.schedule.checkpoint_seconds:
                self.save(folder)
                saved = time.monotonic()
        self.save(folder)

    def _keep(self, milestones: Sequence[Milestone]) -> list[Milestone]:
        """Save at those reached; those still ahead. Rollouts of an adopted policy may end past one, not at it."""
        for milestone in milestones:
            if milestone.env_steps <= self.env_steps:
                self.save(milestone.folder)
        return [milestone for milestone in milestones if milestone.env_steps > self.env_steps]

    def iterate(self) -> Generator[Phase, None, dict[str, float]]:
        """One rollout and the update from it."""
        rollout, config = self.rollout, self.algorithm.config
        with self.lane.updating():
            if isinstance(self.algorithm, KeepsHistory):
                self.algorithm.history.open(self.env)
            rollout.draw_noise(self.generator)
        for _ in collect(self.env, self.lane, rollout, self.director):
            yield Phase.COLLECT
        self.episodes.add(rollout)
        yield Phase.READY
        with self.lane.updating():
            rollout.finish()
            rollout.reward.copy_(self.reward(rollout))
            if isinstance(self.algorithm, HasCritic):
                self.algorithm.judge(rollout)
            gae = advantages(rollout.reward, rollout.value, rollout.first, config.gamma, config.gae_lambda)
            rollout.advantage.copy_(gae)
            rollout.value_target.copy_(gae + rollout.value[:-1])
            if self.director is not None:
                self.director.chooser.learn(rollout)
        metrics = []
        update = self.algorithm.update(rollout, self.generator)
        while True:
            with self.lane.updating():
                metric = next(update, None)
            if metric is None:
                break
            metrics.append(metric)
            yield Phase.UPDATE
            while self.lane.backlog() > MINIBATCHES_AHEAD:
                yield Phase.UPDATE
        with self.lane.updating():
            rollout.carry_over()
        while self.lane.backlog():
            yield Phase.UPDATE
        self.env_steps += rollout.num_steps * rollout.num_envs
        self.updates += 1
        with self.lane.updating():
            means = mean_of(metrics)
            row = {**self._episodes(), **means, **(self.director.chooser.summary() if self.director else {})}
        for name, mean in means.items():  # a gradient that overflowed has spoilt the weights though the loss was fine
            if name.endswith(("loss", "grad_norm")) and not np.isfinite(mean):
                raise Diverged(f"{self.name} diverged at {self.env_steps} steps: its {name} is {mean}")
        return row

    def _episodes(self) -> dict[str, float]:
        """Recent training episodes; their intrinsic return too where r_I is learnt from."""
        summary = self.episodes.summary()
        if self.reward.intrinsic is not None:
            self.explored.add(self.rollout, self.reward.intrinsic.cpu().numpy())
            if explored := self.explored.summary():
                summary["intrinsic_return"] = explored["episode_return"]
        return summary

    def _eval_is_due(self) -> bool:
        every, step = self.schedule.eval_every, self.rollout.num_steps * self.rollout.num_envs
        is_last = self.env_steps >= self.schedule.env_steps
        return every > 0 and (is_last or self.env_steps // every > (self.env_steps - step) // every)

    def close(self) -> None:
        """Release the device's hold on the games, then the games."""
        self.lane.close()
        self.env.close()

    def save(self, folder: Path) -> None:
        """Checkpoint between two rollouts."""
        tensors: dict[str, Tensor] = {
            **self.algorithm.state(),
            "generator": self.generator.get_state(),
            "memory": self.rollout.state[0],
            **with_prefix("reward", _as_tensors(self.reward.state())),
            **with_prefix("episodes", _as_tensors(self.episodes.state())),
        }
        if self.reward.intrinsic is not None:
            tensors |= with_prefix("explored", _as_tensors(self.explored.state()))
        if self.director is not None:
            tensors |= with_prefix("levels", _as_tensors(self.director.state()))
        if isinstance(self.env, Snapshots):
            tensors |= with_prefix("env", _as_tensors(self.env.save()))
        facts = {
            "learner": self.name, "env_steps": self.env_steps, "updates": self.updates, "seconds": self.seconds,
            "stints": self.stints,
        }  # fmt: skip
        keep_checkpoint(folder, self.env_steps, tensors, facts)

    def resume(self, checkpoint: Checkpoint) -> None:
        """Continue exactly from `checkpoint`; games that cannot be restored start new episodes.

        One that holds weights alone, as agents ship, is gone on from with a fresh optimiser, new games and new noise.
        """
        tensors, facts = checkpoint
        self.env_steps, self.updates = facts["env_steps"], facts.get("updates", 0)
        self.seconds = facts.get("seconds", 0.0)
        self.stints = [Stint(*stint) for stint in facts.get("stints", ())]
        with self.lane.updating():
            self.algorithm.load_state(tensors)
        if checkpoint.is_weights_alone:
            self.generator.manual_seed(self.generator.initial_seed() + self.env_steps)
            return
        with self.lane.updating():
            if isinstance(self.env, Snapshots):
                self.env.restore(_as_arrays(under_prefix("env", tensors)))
                self.rollout.state[0].copy_(tensors["memory"])
        if tensors["generator"].shape == self.generator.get_state().shape:
            self.generator.set_state(tensors["generator"])
        else:  # of another kind of device, whose numbers cannot go on here: others than those drawn so far
            self.generator.manual_seed(self.generator.initial_seed() + self.env_steps)
        self.reward.load_state(_as_arrays(under_prefix("reward", tensors)))
        self.episodes.load_state(_as_arrays(under_prefix("episodes", tensors)))
        if self.reward.intrinsic is not None:
            self.explored.load_state(_as_arrays(under_prefix("explored", tensors)))
        if self.director is not None:
            self.director.load_state(_as_arrays(under_prefix("levels", tensors)))


def _giving_way(work: Generator[None, None, Scores]) -> Generator[Phase, None, Scores]:
    while True:
        try:
            next(work)
        except StopIteration as finished:
            return finished.value
        yield Phase.COLLECT


def _as_tensors(arrays: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}


def _as_arrays(tensors: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}
