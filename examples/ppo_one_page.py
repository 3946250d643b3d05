"""PPO on one page: the training loop of `expgen train --algo ppo --preset laptop` as one straight loop.

    python examples/ppo_one_page.py

Read this first. It trains a small policy on small mazes in less than a minute and prints its progress. All parts are
imported from the package. What the package adds are checkpoints, many learners side by side, GPU support and scores on
unseen levels. `tests/examples/test_ppo_one_page.py` checks that the weights are bit-equal to those of
`training.learner.Learner`.

References: Schulman et al. 2017 (PPO, arXiv 1707.06347) and 2016 (GAE, arXiv 1506.02438).
"""

import time

import torch
from torch import nn
from torch.optim import Adam

from expgen.algorithms.ppo import PPOConfig, ppo_loss
from expgen.envs.make import make_env
from expgen.networks.actor_critic import NetworkConfig, Policy, make_policy
from expgen.reward.source import GameReward, GameRewardConfig
from expgen.rollout.collect import collect
from expgen.rollout.gae import advantages, normalized
from expgen.rollout.minibatch import minibatches
from expgen.rollout.rollout import Rollout
from expgen.training.lane import PlainLane

MAZE = {"max_cells": 3, "time_limit": 40}  # mazes of 2 × 2 and 3 × 3 cells; the default, up to 5 × 5, takes minutes
NUM_ENVS = 64  # N: games played at once
NUM_STEPS = 128  # T: steps of each game per update
CONFIG = PPOConfig(gamma=0.99, learning_rate=1e-3, minibatch_order="shuffled")  # other fields: the ExpGen paper's


def train(num_updates: int, seed: int = 0) -> Policy:
    """Return a policy after `num_updates` updates of T · N steps each; all randomness comes from `seed`."""
    cpu = torch.device("cpu")
    env = make_env("minimaze", levels=200, num_envs=NUM_ENVS, seed=seed, **MAZE)

    # The policy: pixels → two dense layers → logits of π(a|o) and V(o), with orthogonal initialisation.
    policy = make_policy(env.spec, NetworkConfig(), torch.Generator().manual_seed(seed), cpu)
    adam = Adam(policy.parameters(), lr=CONFIG.learning_rate, eps=CONFIG.adam_epsilon, fused=True)

    # T steps of N games as tensors, allocated once: obs, first, value [T+1, N]; action, log_prob, reward [T, N]; …
    rollout = Rollout(env.spec, NUM_STEPS, NUM_ENVS, policy.state_size, cpu)
    actor = PlainLane(policy, rollout)  # runs the policy on step t of the rollout and samples an action
    reward = GameReward(GameRewardConfig(), NUM_ENVS)  # the game's reward divided by the running std of its return
    generator = torch.Generator(cpu).manual_seed(seed)  # samples actions and shuffles minibatches

    began = time.monotonic()
    for update in range(1, num_updates + 1):
        # 1. Play. argmax(logits + Gumbel noise) is a sample of softmax(logits); the noise is drawn in advance.
        rollout.draw_noise(generator)
        for _ in collect(env, actor, rollout):
            pass  # the games are stepping; with many learners, another learner would run now

        # 2. Rewards [T, N].
        rollout.finish()
        rollout.reward.copy_(reward(rollout))

        # 3. Advantages (GAE paper, Eq. 16):  δ_t = r_t + γ V_{t+1} − V_t,  Â_t = δ_t + γλ Â_{t+1}.
        #    Both stop at the end of an episode. The value target is Â_t + V_t.
        advantage = advantages(rollout.reward, rollout.value, rollout.first, CONFIG.gamma, CONFIG.gae_lambda)
        rollout.advantage.copy_(advantage)
        rollout.value_target.copy_(advantage + rollout.value[:-1])

        # 4. Learn: E epochs of minibatches, each one gradient step on PPO's objective (PPO paper, Eq. 7 and 9):
        #    L = −E[min(ρ Â, clip(ρ, 1−c, 1+c) Â)] + c_V · value error − c_H · entropy,  ρ = π(a|o) / π_old(a|o).
        advantage = normalized(rollout.advantage, CONFIG.advantage_epsilon)
        for _ in range(CONFIG.epochs):
            for batch in minibatches(rollout, advantage, CONFIG.minibatches, CONFIG.minibatch_order, generator):
                output = policy(batch.obs, batch.first, batch.state)
                loss, parts = ppo_loss(output, batch, CONFIG)
                adam.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(policy.parameters(), CONFIG.max_grad_norm)
                adam.step()

        # 5. The next rollout starts with the last observation (and the memory of recurrent policies) of this one.
        rollout.carry_over()

        ended = rollout.host_first[1:]  # [T, N] where a step ended an episode
        solved = rollout.host_solved[1:][ended].float().mean()
        steps = update * NUM_STEPS * NUM_ENVS
        print(
            f"{steps:>9,} steps  {steps / (time.monotonic() - began):>7,.0f} steps/s  "
            f"solved {solved:4.0%} of {ended.sum():>4} episodes  entropy {parts['entropy']:.2f}",
            flush=True,
        )
    env.close()
    return policy


if __name__ == "__main__":
    train(num_updates=40)
