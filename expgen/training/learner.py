"""Learner: an environment, an algorithm and a rollout, and how one rollout becomes one update.

`iterate` is a generator that gives way whenever work is under way elsewhere.
"""

from collections.abc import Generator
from dataclasses import dataclass
from enum import Enum

import numpy as np
import torch

from expgen.algorithms.protocol import Algorithm, Metrics
from expgen.envs.vec_env import VecEnv
from expgen.networks.actor_critic import Policy
from expgen.networks.normalized import update_moments_in
from expgen.reward.source import RewardSource
from expgen.rollout.collect import collect
from expgen.rollout.gae import advantages
from expgen.rollout.level_choice import Director
from expgen.rollout.rollout import Rollout
from expgen.training.average import AveragedPolicy, Weights
from expgen.training.episodes import EpisodeLog
from expgen.training.lane import Lane
from expgen.training.sessions import Session

MINIBATCHES_AHEAD = 2  # how far the host may run ahead of the device in one learner's update


class Phase(Enum):
    """What a learner is about to do when it is next resumed."""

    COLLECT = "collect"
    READY = "ready"  # has a rollout, wants the device for its update
    UPDATE = "update"
    WAIT = "wait"  # its update is under way on the device, and there is nothing to do for it here


class Diverged(RuntimeError):
    """A loss stopped being a finite number; the checkpoint before it is kept."""


@dataclass(frozen=True)
class Schedule:
    """When a learner stops, saves and is scored, in its own environment steps and seconds."""

    env_steps: int
    eval_every: int  # 0: never
    checkpoint_seconds: float


class Learner:
    """Owns an environment, an algorithm, a rollout and everything that decides how they go on."""

    def __init__(
        self,
        name: str,
        env: VecEnv,
        algorithm: Algorithm,
        lane: Lane,
        reward: RewardSource,
        rollout: Rollout,
        schedule: Schedule,
        seed: int,
        director: Director | None = None,
        average: AveragedPolicy | None = None,
    ) -> None:
        """`algorithm` learns from `rollout`, which `lane` fills by acting for its policy in `env`."""
        self.name, self.env, self.reward, self.rollout = name, env, reward, rollout
        self.algorithm, self.lane = algorithm, lane
        self.schedule, self.director, self.average = schedule, director, average
        self.generator = torch.Generator(rollout.device).manual_seed(seed)
        self.episodes = EpisodeLog(rollout.num_envs)
        self.explored = EpisodeLog(rollout.num_envs)  # the same episodes, paid r_I where there is one
        self.env_steps = self.updates = 0
        self.seconds = 0.0  # of all sessions that trained it
        self.sessions: list[Session] = []

    def iterate(self) -> Generator[Phase, None, dict[str, float]]:
        """One rollout and the update from it."""
        rollout, config = self.rollout, self.algorithm.config
        with self.lane.updating():
            self.algorithm.before_rollout(self.env)
            rollout.draw_noise(self.generator)
        for _ in collect(self.env, self.lane, rollout, self.director):
            yield Phase.COLLECT
        self.episodes.add(rollout)
        yield Phase.READY
        with self.lane.updating():
            rollout.finish()
            rollout.reward.copy_(self.reward(rollout))
            self.algorithm.compute_values(rollout)
            played = (rollout.reward, rollout.value, rollout.first)
            end = (rollout.survived, self.reward.end_value)
            gae = advantages(*played, config.gamma, config.gae_lambda, *end)
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
                yield Phase.WAIT
        with self.lane.updating():
            rollout.carry_over()
            update_moments_in(self.algorithm.parts().values(), rollout.obs[:-1])
            if self.average is not None:
                self.average.update()
        while self.lane.backlog():
            yield Phase.WAIT
        self.env_steps += rollout.num_steps * rollout.num_envs
        self.updates += 1
        with self.lane.updating():
            means = mean_metrics(metrics)
            row = {**self._episodes(), **means, **(self.director.chooser.summary() if self.director else {})}
        for name, mean in means.items():  # a gradient that overflowed has spoilt the weights though the loss was fine
            if name.endswith(("loss", "grad_norm")) and not np.isfinite(mean):
                raise Diverged(f"{self.name} diverged at {self.env_steps} steps: its {name} is {mean}")
        return row

    def policies(self) -> dict[Weights, Policy]:
        """What can be played of it: the live policy, and the averaged one once there is an average."""
        policies: dict[Weights, Policy] = {"live": self.algorithm.policy}
        if self.average is not None and self.average.updates:
            policies["average"] = self.average.policy
        return policies

    def _episodes(self) -> dict[str, float]:
        """Recent training episodes; their intrinsic return too where r_I is learnt from."""
        summary = self.episodes.summary()
        if self.reward.intrinsic is not None:
            self.explored.add(self.rollout, self.reward.intrinsic.cpu().numpy())
            if explored := self.explored.summary():
                summary["intrinsic_return"] = explored["episode_return"]
        return summary

    def close(self) -> None:
        """Release the device's hold on the games, then the games."""
        self.lane.close()
        self.env.close()


def mean_metrics(metrics: list[Metrics]) -> dict[str, float]:
    """Each metric's mean over the minibatches that have it; one transfer from the device for all of them."""
    names = list(dict.fromkeys(name for row in metrics for name in row))
    means = [torch.stack([row[name].float() for row in metrics if name in row]).mean() for name in names]
    return dict(zip(names, torch.stack(means).tolist(), strict=True))
