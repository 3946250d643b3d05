"""A custom reward, RND: expgen train --import examples/own_reward.py --algo expgen+rnd --run runs/rnd"""

from dataclasses import dataclass

import torch

import expgen
from expgen.algorithms.policy_gradient import Descent
from expgen.networks.actor_critic import NetworkConfig, fresh_network, make_encoder
from expgen.reward.source import RewardSource


@dataclass(frozen=True)
class RNDConfig:
    rnd_rate: float = 1e-4  # every field becomes a flag: --rnd-rate


@expgen.register("reward", "rnd", config=RNDConfig())
class RND(RewardSource):
    """RND (Burda et al. 2018): PPO with a GRU on the error of predicting a fixed random network."""

    def __init__(self, config, num_envs):
        self.config, self.intrinsic = config, torch.zeros(0, num_envs)

    def prepare(self, spec, device, seed):
        generator, config = torch.Generator().manual_seed(seed), NetworkConfig(features=64)
        self.target = fresh_network(lambda: make_encoder(spec, config), generator, device)
        self.predictor = fresh_network(lambda: make_encoder(spec, config), generator, device)
        self.descent = Descent(self.predictor.parameters(), self.config.rnd_rate, 1e-5)

    def __call__(self, rollout):
        frames = rollout.full[1:].flatten(0, 1)  # [T·N, …]
        error = (self.predictor(frames) - self.target(frames).detach()).square().mean(1)
        self.descent.step(error.mean())
        reward = error.detach().view_as(rollout.reward) * ~rollout.first[1:]  # 0 for the step that ends an episode
        self.intrinsic = reward / reward.std().clamp(min=1e-8)  # [T, N]
        return self.intrinsic

    def parts(self):  # saved in checkpoints
        return {"target": self.target, "predictor": self.predictor, "descent": self.descent}
