"""Learner: collects rollouts from an environment and updates its policy from each.

`iterate` is a generator that yields whenever it would wait for the device or the games.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

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

MINIBATCHES_AHEAD = 2  # minibatches of one learner that the host may queue on the device


class Phase(Enum):
    """What a learner does when it is next resumed."""

    COLLECT = "collect"
    READY = "ready"  # its rollout is complete; it needs a permit to update
    UPDATE = "update"
    WAIT = "wait"  # its update runs on the device; the host has nothing to do


class Diverged(RuntimeError):
    """A loss or gradient norm is no longer finite; the last checkpoint is kept."""


@dataclass(frozen=True)
class Schedule:
    """When a learner stops, is scored and is saved, in its own environment steps and seconds."""

    env_steps: int
    eval_every: int  # 0: never
    checkpoint_seconds: float


class Learner:
    """One policy in training: its environment, algorithm, rollout, reward source and random generator."""

    def __init__(
        self,
        name: str,
        *,
        env: VecEnv,
        algorithm: Algorithm,
        lane: Lane,
        reward: RewardSource,
        rollout: Rollout,
        schedule: Schedule,
        seed: int,
        director: Director | None = None,
        average: AveragedPolicy | None = None,
        origin: Mapping[str, Any] | None = None,
    ) -> None:
        """`lane` acts in `env` with the policy of `algorithm` and fills `rollout`, from which `algorithm` learns.

        `seed` seeds the sampling of actions and minibatches. `director` sets the levels, `average` averages weights.
        `origin` is stored in checkpoints (training.origin).
        """
        self.name, self.env, self.reward, self.rollout = name, env, reward, rollout
        self.algorithm, self.lane = algorithm, lane
        self.schedule, self.director, self.average = schedule, director, average
        self.origin = origin or {}
        self.generator = torch.Generator(rollout.device).manual_seed(seed)
        self.episodes = EpisodeLog(rollout.num_envs)
        self.intrinsic_episodes = EpisodeLog(rollout.num_envs)  # returns are sums of r_I, if it is learnt from
        self.env_steps = self.updates = 0
        self.seconds = 0.0  # in all sessions
        self.sessions: list[Session] = []

    def iterate(self) -> Generator[Phase, None, dict[str, float]]:
        """Collect one rollout and update from it; return a row of metrics."""
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
            gae = advantages(
                rollout.reward,
                rollout.value,
                rollout.first,
                config.gamma,
                config.gae_lambda,
                survived=rollout.survived,
                end_value=self.reward.end_value,
            )
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
            row = {**self._episode_metrics(), **means, **(self.director.chooser.summary() if self.director else {})}
        for name, mean in means.items():  # an overflowing gradient ruins the weights even if the loss is finite
            if name.endswith(("loss", "grad_norm")) and not np.isfinite(mean):
                raise Diverged(f"{self.name} diverged at {self.env_steps} steps: its {name} is {mean}")
        return row

    def policies(self) -> dict[Weights, Policy]:
        """Return the live policy, and the averaged one after the first update if weights are averaged."""
        policies: dict[Weights, Policy] = {"live": self.algorithm.policy}
        if self.average is not None and self.average.updates:
            policies["average"] = self.average.policy
        return policies

    def _episode_metrics(self) -> dict[str, float]:
        """Return means over recent training episodes, with their intrinsic return if r_I is learnt from."""
        summary = self.episodes.summary()
        if self.reward.intrinsic is not None:
            self.intrinsic_episodes.add(self.rollout, self.reward.intrinsic.cpu().numpy())
            if intrinsic := self.intrinsic_episodes.summary():
                summary["intrinsic_return"] = intrinsic["episode_return"]
        return summary

    def close(self) -> None:
        """Close the lane, then the environment whose buffers it uses."""
        self.lane.close()
        self.env.close()


def mean_metrics(metrics: list[Metrics]) -> dict[str, float]:
    """Return each metric's mean over the minibatches that have it, in one transfer from the device."""
    names = list(dict.fromkeys(name for row in metrics for name in row))
    means = [torch.stack([row[name].float() for row in metrics if name in row]).mean() for name in names]
    return dict(zip(names, torch.stack(means).tolist(), strict=True))
