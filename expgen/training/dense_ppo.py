"""DensePPO: `algorithms.ppo` for a memoryless dense policy on the CPU, with the loss's gradient written out.

The same minibatches from the same random numbers, the same loss, clipping and Adam, and the same checkpoints as PPO,
which it is made from; what differs is rounding. `tests/training/test_dense_ppo.py` holds the two together.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from expgen.algorithms.ppo import PPO, Metrics, PPOConfig
from expgen.networks.state import load_module, under_prefix, with_prefix
from expgen.rollout.gae import normalized
from expgen.rollout.minibatch import transition_order
from expgen.rollout.rollout import Rollout
from expgen.training.dense_network import DenseNetwork

MOMENTS = ("exp_avg", "exp_avg_sq")  # torch's names for Adam's


class Transitions(NamedTuple):
    """A minibatch: observations as the network reads them `[B, I]`, the rest `[B]`."""

    obs: Tensor
    action: Tensor
    log_prob: Tensor
    value: Tensor
    advantage: Tensor
    value_target: Tensor


def ppo_gradient(output: Tensor, batch: Transitions, config: PPOConfig) -> tuple[Tensor, Metrics]:
    """∂L/∂o of `ppo_loss` and its parts, from `output` `[A+1, B]`: logits z over the value V.

    With π = softmax(z), ρ = π(a)/π_old(a), H the row's entropy and c_H, c_V, c the config's coefficients and clip,

        ∂L/∂z_i = (1/B) [ (π_i − 1{i = a}) w + c_H π_i (log π_i + H) ]
        w       = ρ Â  where  ρ Â ≤ clip(ρ, 1±c) Â,  else 0
        ∂L/∂V   = (c_V/B) (V − R)  where  (V − R)² ≥ (V_old + clip(V − V_old, ±c) − R)²,  else 0
    """
    num_rows = output.shape[1]
    action = batch.action.unsqueeze(0)  # [1, B]
    log_pi = torch.log_softmax(output[:-1], 0)  # [A, B]
    pi = log_pi.exp()
    row_entropy = (pi * log_pi).sum(0).neg_()  # [B]
    log_ratio = log_pi.gather(0, action)[0].sub_(batch.log_prob)
    ratio = log_ratio.exp()
    surrogate = ratio * batch.advantage
    smaller = torch.minimum(surrogate, ratio.clamp(1 - config.clip, 1 + config.clip).mul_(batch.advantage))
    change = output[-1] - batch.value
    error = output[-1] - batch.value_target
    clipped_error = change.clamp(-config.clip, config.clip).sub_(change).add_(error)  # exactly `error` where unclipped
    squared = error.square()
    larger = torch.maximum(squared, clipped_error.square_())

    gradient = torch.empty_like(output)
    weight = (surrogate <= smaller) * surrogate  # w
    d_logits = gradient[:-1]
    torch.add(log_pi, row_entropy, out=d_logits).mul_(config.entropy_coef).add_(weight).mul_(pi)
    d_logits.scatter_add_(0, action, weight.neg().unsqueeze(0))
    torch.mul(error.mul_(config.value_coef), squared >= larger, out=gradient[-1])

    terms = torch.stack([smaller, larger, row_entropy, ratio.sub_(log_ratio)]).mean(1)
    scale, shift = terms.new_tensor([-1, 0.5, 1, 1]), terms.new_tensor([0, 0, 0, -1])
    policy_loss, value_loss, entropy, approximate_kl = torch.addcmul(shift, terms, scale).unbind()
    loss = policy_loss + config.value_coef * value_loss - config.entropy_coef * entropy
    parts = {"loss": loss, "policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}
    return gradient.div_(num_rows), {**parts, "approximate_kl": approximate_kl}


class DensePPO:
    """An Algorithm; owns the weights of `plain.policy`, through `network`, and Adam's moments of them."""

    def __init__(self, plain: PPO, network: DenseNetwork, rows: Tensor) -> None:
        """`rows` `[T+1, N, I]` are the observations of the rollout as the network reads them."""
        self.policy, self.config = plain.policy, plain.config
        self.network, self.rows = network, rows
        self.weight = nn.Parameter(network.weight)
        self.weight.grad = network.gradient
        config = self.config
        self.optimizer = torch.optim.Adam([self.weight], lr=config.learning_rate, eps=config.adam_epsilon, fused=True)
        self.moments = {name: network.flat() for name in MOMENTS}
        self.num_updates = torch.zeros(())
        self.optimizer.state[self.weight] = {"step": self.num_updates, **self.moments}
        self.load_state(plain.state())

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """E epochs of minibatches; yields the metrics of each, as 0-d tensors."""
        config, T = self.config, rollout.num_steps
        advantage = normalized(rollout.advantage, config.advantage_epsilon)
        facts = torch.stack([rollout.log_prob[:T], rollout.value[:T], advantage, rollout.value_target]).flatten(1)
        obs, action = self.rows[:T].flatten(0, 1), rollout.action[:T].flatten()
        for _ in range(config.epochs):
            for row in transition_order(rollout, config.minibatches, config.minibatch_order, generator):
                taken = (obs.index_select(0, row), action.index_select(0, row), *facts.index_select(1, row))
                yield self.step(Transitions(*taken))

    @torch.no_grad()
    def step(self, batch: Transitions) -> Metrics:
        """One gradient step."""
        output = self.network.forward(batch.obs)
        d_output, parts = ppo_gradient(output, batch, self.config)
        gradient = self.network.backward(batch.obs, d_output)
        norm = torch.linalg.vector_norm(gradient)
        gradient.mul_((self.config.max_grad_norm / (norm + 1e-6)).clamp_(max=1))  # as nn.utils.clip_grad_norm_
        self.optimizer.step()
        return {**parts, "grad_norm": norm}

    def state(self) -> dict[str, Tensor]:
        """As PPO's, tensor for tensor."""
        moments = {name: self.network.layers_of(flat).by_name() for name, flat in self.moments.items()}
        adam = {}
        for index, (parameter, _) in enumerate(self.policy.named_parameters()):
            adam[f"{index}.step"] = self.num_updates.clone()
            adam |= {f"{index}.{name}": moments[name][parameter] for name in MOMENTS}
        return {**with_prefix("policy", self.policy.state_dict()), **with_prefix("adam", adam)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from `state`, this path's or PPO's."""
        load_module(self.policy, under_prefix("policy", state), "the checkpoint")
        adam, nothing = under_prefix("adam", state), torch.zeros(())  # PPO's has no moments before its first step
        for name, tensor in under_prefix("adam", self.state()).items():
            tensor.copy_(adam.get(name, nothing))
        self.num_updates.copy_(adam.get("0.step", nothing))
