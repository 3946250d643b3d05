"""RND (Burda et al. 2018): expgen train --import examples/own_reward.py --algo expgen+rnd --run runs/rnd"""

from dataclasses import dataclass

import torch

import expgen
from expgen.algorithms.policy_gradient import Descent
from expgen.networks.actor_critic import NetworkConfig, fresh_network, make_encoder
from expgen.reward.source import RewardSource


@dataclass(frozen=True)
class RNDConfig:
    rnd_rate: float = 1e-4  # every field is a flag: --rnd-rate


@expgen.register("reward", "rnd", config=RNDConfig())
class RND(RewardSource):
    """PPO with a GRU on the error of predicting what a fixed random network says of a frame."""

    def __init__(self, config, num_envs):
        self.config, self.intrinsic = config, torch.zeros(0, num_envs)

    def prepare(self, spec, device, seed):
        draw, net = torch.Generator().manual_seed(seed), NetworkConfig(features=64)
        pair = [fresh_network(lambda: make_encoder(spec, net), draw, device) for _ in range(2)]
        self.target, self.predictor = pair
        self.descent = Descent(self.predictor.parameters(), self.config.rnd_rate, 1e-5)

    def __call__(self, rollout):
        seen = rollout.full[1:].flatten(0, 1)  # [T·N, …]
        error = (self.predictor(seen) - self.target(seen).detach()).square().mean(1)
        self.descent.step(error.mean())
        reward = error.detach().view_as(rollout.reward) * ~rollout.first[1:]  # the frame after an end is not its own
        self.intrinsic = reward / reward.std().clamp(min=1e-8)  # [T, N]
        return self.intrinsic

    def parts(self):  # what a checkpoint holds
        return {"target": self.target, "predictor": self.predictor, "descent": self.descent}
