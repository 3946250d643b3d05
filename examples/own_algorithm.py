"""A custom algorithm: A2C (Mnih et al. 2016), alone (`--algo a2c`) or for ExpGen's members (`--algo expgen-a2c`):

expgen train --import examples/own_algorithm.py --algo expgen-a2c --rollout-steps 8 --run runs/a2c
"""

from dataclasses import dataclass

import expgen
from expgen.algorithms.policy_gradient import Descent, entropy, log_prob_of
from expgen.algorithms.protocol import Algorithm


@dataclass(frozen=True)
class A2CConfig:
    gamma: float = 0.99  # every field becomes a flag: --gamma
    gae_lambda: float = 1.0
    learning_rate: float = 7e-4
    value_coef: float = 0.5
    entropy_coef: float = 0.01


@expgen.register("algorithm", "a2c", config=A2CConfig())
class A2C(Algorithm):
    """A2C: one policy-gradient step per rollout."""

    def __init__(self, policy, config):
        self.policy, self.config = policy, config
        self.descent = Descent(policy.parameters(), config.learning_rate, 1e-5, max_grad_norm=0.5)

    def update(self, rollout, generator):
        output = self.policy(rollout.obs[:-1], rollout.first[:-1], rollout.state[0])
        policy_loss = -(log_prob_of(output.logits, rollout.action[:-1]) * rollout.advantage).mean()
        value_loss = (output.value - rollout.value_target).square().mean()
        bonus = self.config.entropy_coef * entropy(output.logits)
        norm = self.descent.step(policy_loss + self.config.value_coef * value_loss - bonus)
        yield {"policy_loss": policy_loss.detach(), "value_loss": value_loss.detach(), "grad_norm": norm}

    def parts(self):  # saved in checkpoints
        return {"policy": self.policy, "adam": self.descent}
