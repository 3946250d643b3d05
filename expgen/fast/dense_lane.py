"""DenseLane: acts on the CPU with a dense policy without memory, in few operations per step."""

import torch

from expgen.envs.vec_env import Observation
from expgen.fast.dense_network import DenseNetwork
from expgen.networks.actor_critic import Policy
from expgen.networks.small import SmallEncoder
from expgen.rollout.rollout import Rollout
from expgen.training.lane import PlainLane


class DenseLane(PlainLane):
    """Keeps observations as the float32 rows that the network reads, so that updates do not convert them again.

    A step computes only the action. Values and log-probabilities of all slots are computed together after the last
    slot, from the stored outputs.
    """

    def __init__(self, policy: Policy, rollout: Rollout) -> None:
        assert isinstance(policy.encoder, SmallEncoder)
        super().__init__(policy, rollout)
        self.network = DenseNetwork(policy)
        self.is_pixels = policy.encoder.is_pixels
        slots, num_envs = rollout.num_steps + 1, rollout.num_envs
        self.rows = torch.ones(slots, num_envs, policy.encoder.linear1.in_features + 1)  # [T+1, N, I+1]
        self.output = torch.zeros(slots, policy.policy_head.out_features + 1, num_envs)  # [T+1, A+1, N]
        # views of each slot, made once
        self.obs_slots, self.row_slots = rollout.obs.flatten(2).unbind(), self.rows.unbind()
        self.input_slots, self.output_slots = self.rows[..., :-1].unbind(), self.output.unbind()
        self.logits, self.noise = self.output.numpy()[:, :-1], rollout.noise.numpy().transpose(0, 2, 1)  # [T+1, A, N]

    @torch.no_grad()
    def start(self, t: int, observation: Observation) -> None:
        self.rollout.record(t, observation)
        inputs = self.input_slots[t].copy_(self.obs_slots[t])  # [N, I]
        if self.is_pixels:
            inputs.mul_(2 / 255).sub_(1)  # as in SmallEncoder
        self.network.forward(self.row_slots[t], out=self.output_slots[t])
        self.action[:] = self.decided[t] = (self.logits[t] + self.noise[t]).argmax(0)  # Gumbel-max, as in `sample`
        if t == self.rollout.num_steps:
            self._fill_log_probs_and_values()

    def _fill_log_probs_and_values(self) -> None:
        rollout = self.rollout
        log_prob = torch.log_softmax(self.output[:, :-1], 1).gather(1, rollout.action.unsqueeze(1))  # [T+1, 1, N]
        rollout.log_prob.copy_(log_prob.squeeze(1))
        rollout.value.copy_(self.output[:, -1])
