"""DensePPO: `algorithms.ppo` for a dense policy without memory on the CPU, with a hand-written gradient.

It uses the same minibatches, random numbers, loss, clipping, Adam and checkpoints as PPO and differs only by rounding;
`tests/fast/test_dense_ppo.py` compares the two.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor
from torch.optim import Adam

from expgen.algorithms.ppo import PPO, PPOConfig
from expgen.algorithms.protocol import Algorithm, Metrics
from expgen.fast.dense_network import DenseNetwork
from expgen.networks.state import Part
from expgen.rollout.gae import normalized
from expgen.rollout.minibatch import minibatch_rows
from expgen.rollout.rollout import Rollout

MOMENTS = ("exp_avg", "exp_avg_sq")  # names in the state of torch's Adam
PARTS = ("loss", "policy_loss", "value_loss", "entropy", "approximate_kl")


class Transitions(NamedTuple):
    """A minibatch: observations as network inputs `[B, I+1]`, the rest numpy arrays `[B]`."""

    obs: Tensor
    action: ndarray
    log_prob: ndarray
    value: ndarray
    advantage: ndarray
    value_target: ndarray


def ppo_gradient(output: ndarray, batch: Transitions, config: PPOConfig) -> tuple[ndarray, ndarray]:
    """Return ∂L/∂o `[A+1, B]` of `ppo_loss` and its PARTS, from `output` `[A+1, B]`: logits z, then the value V.

    With π = softmax(z), ρ = π(a)/π_old(a), H the row's entropy and c_H, c_V, c the config's coefficients and clip,

        ∂L/∂z_i = (1/B) [ (π_i − 1{i = a}) w + c_H π_i (log π_i + H) ]
        w       = ρ Â  where  ρ Â ≤ clip(ρ, 1±c) Â,  else 0
        ∂L/∂V   = (c_V/B) (V − R)  where  (V − R)² ≥ (V_old + clip(V − V_old, ±c) − R)²,  else 0

    In numpy, because torch has three times the overhead for these forty operations on a few kilobytes.
    """
    logits, value = output[:-1], output[-1]
    num_rows = output.shape[1]
    chosen = (batch.action, np.arange(num_rows))
    log_pi = logits - logits.max(0)  # [A, B]
    pi = np.exp(log_pi)
    total = pi.sum(0)
    pi /= total
    log_pi -= np.log(total)
    entropy = -(pi * log_pi).sum(0)  # [B]

    log_ratio = log_pi[chosen] - batch.log_prob
    ratio = np.exp(log_ratio)
    surrogate = ratio * batch.advantage
    smaller = np.minimum(surrogate, ratio.clip(1 - config.clip, 1 + config.clip) * batch.advantage)
    weight = surrogate * (surrogate <= smaller)  # w

    error, change = value - batch.value_target, value - batch.value
    clipped_error = error + (change.clip(-config.clip, config.clip) - change)  # equals `error` if nothing is clipped
    squared = error * error
    larger = np.maximum(squared, clipped_error * clipped_error)

    gradient = np.empty_like(output)
    d_logits = np.add(log_pi, entropy, out=gradient[:-1])
    d_logits *= config.entropy_coef
    d_logits += weight
    d_logits *= pi
    d_logits[chosen] -= weight
    np.multiply(config.value_coef * error, squared >= larger, out=gradient[-1])
    gradient *= 1 / num_rows

    terms = np.stack([-smaller, 0.5 * larger, entropy, ratio - 1 - log_ratio]).mean(1)
    loss = terms[0] + config.value_coef * terms[1] - config.entropy_coef * terms[2]
    return gradient, np.concatenate([[loss], terms], dtype=np.float32)


class DenseAdam:
    """Adam on a dense network's flat weights; its checkpoint has the same tensors as that of PPO's Adam."""

    def __init__(self, network: DenseNetwork, names: list[str], config: PPOConfig) -> None:
        """`names`: the policy's parameters, in order."""
        self.network, self.names = network, names
        self.num_steps = torch.zeros(())
        self.moments = {name: network.flat() for name in MOMENTS}
        self.adam = Adam([network.weight], config.learning_rate, eps=config.adam_epsilon, fused=True)
        self.adam.state[network.weight] = {"step": self.num_steps, **self.moments}
        network.weight.grad = network.gradient  # what `backward` fills

    def step(self) -> None:
        self.adam.step()

    def state(self) -> dict[str, Tensor]:
        moments = {name: self.network.layers_of(flat).by_name() for name, flat in self.moments.items()}
        state: dict[str, Tensor] = {}
        for index, parameter in enumerate(self.names):
            state[f"{index}.step"] = self.num_steps.clone()
            state |= {f"{index}.{name}": moments[name][parameter] for name in MOMENTS}
        return state

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a state of this class or of PPO's Adam, which has no moments before its first step."""
        zero = torch.zeros(())
        for name, tensor in self.state().items():
            tensor.copy_(state.get(name, zero))
        self.num_steps.copy_(state.get("0.step", zero))


class DensePPO(Algorithm):
    """PPO on the policy of `plain`, whose weights `network` holds."""

    def __init__(self, plain: PPO, network: DenseNetwork, rows: Tensor) -> None:
        """`rows` `[T+1, N, I+1]`: the observations of the rollout as network inputs."""
        self.policy, self.config = plain.policy, plain.config
        self.network, self.rows = network, rows
        self.adam = DenseAdam(network, [name for name, _ in self.policy.named_parameters()], self.config)
        self.load_state(plain.state())

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """Run the epochs of minibatches and yield the metrics of each, as 0-d tensors."""
        config, T, N = self.config, rollout.num_steps, rollout.num_envs
        advantage = normalized(rollout.advantage, config.advantage_epsilon)
        numbers = torch.stack([rollout.log_prob[:T], rollout.value[:T], advantage, rollout.value_target])
        obs, action, numbers = self.rows[:T].flatten(0, 1), rollout.action[:T].flatten(), numbers.flatten(1)
        for _ in range(config.epochs):
            for row in minibatch_rows(T, N, config.minibatches, config.minibatch_order, generator):
                arrays = action.index_select(0, row).numpy(), *numbers.index_select(1, row).numpy()
                yield self.step(Transitions(obs.index_select(0, row), *arrays))

    @torch.no_grad()
    def step(self, batch: Transitions) -> Metrics:
        """Take one gradient step."""
        output = self.network.forward(batch.obs)
        d_output, parts = ppo_gradient(output.numpy(), batch, self.config)
        gradient = self.network.backward(batch.obs, torch.from_numpy(d_output))
        norm = torch.linalg.vector_norm(gradient)
        gradient.mul_((self.config.max_grad_norm / (norm + 1e-6)).clamp_(max=1))  # as nn.utils.clip_grad_norm_
        self.adam.step()
        return {**dict(zip(PARTS, torch.from_numpy(parts).unbind())), "grad_norm": norm}

    def parts(self) -> dict[str, Part]:
        return {"policy": self.policy, "adam": self.adam}
