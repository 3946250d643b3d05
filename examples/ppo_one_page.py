"""PPO on one page: the training loop of `expgen train --algo ppo --preset laptop`, a straight loop over its parts.

    python examples/ppo_one_page.py

Read this first. In less than a minute it trains a small policy on small mazes and prints how it learns. Every part is
the package's own; what the package adds around them are checkpoints to resume from, many learners side by side, a GPU,
and scores on unseen levels. `tests/examples/test_ppo_one_page.py` holds the weights that this loop makes to those of
`training.learner.Learner`, bit for bit.

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

MAZE = {"max_cells": 3, "time_limit": 40}  # mazes of 2 × 2 and 3 × 3 cells; the default goes to 5 × 5 and takes minutes
NUM_ENVS = 64  # N: games played at once
NUM_STEPS = 128  # T: steps of each game between two updates
CONFIG = PPOConfig(gamma=0.99, learning_rate=1e-3, minibatch_order="shuffled")  # the rest: the ExpGen paper's


def train(num_updates: int, seed: int = 0) -> Policy:
    """A policy after `num_updates` updates, each from T · N steps; all randomness comes from `seed`."""
    cpu = torch.device("cpu")
    env = make_env("minimaze", levels=200, num_envs=NUM_ENVS, seed=seed, **MAZE)

    # The policy: pixels → two dense layers → logits of π(a|o) and V(o), orthogonal initial weights.
    policy = make_policy(env.spec, NetworkConfig(), torch.Generator().manual_seed(seed), cpu)
    adam = Adam(policy.parameters(), lr=CONFIG.learning_rate, eps=CONFIG.adam_epsilon, fused=True)

    # T steps of N games as tensors, allocated once: obs, first, value [T+1, N]; action, log_prob, reward [T, N]; …
    rollout = Rollout(env.spec, NUM_STEPS, NUM_ENVS, policy.state_size, cpu)
    actor = PlainLane(policy, rollout)  # runs the policy on slot t of the rollout and samples an action there
    reward = GameReward(GameRewardConfig(), NUM_ENVS)  # the game's reward over the running std of its return
    generator = torch.Generator(cpu).manual_seed(seed)  # samples actions and shuffles minibatches

    began = time.monotonic()
    for update in range(1, num_updates + 1):
        # 1. Play. An action is argmax(logits + Gumbel noise), a sample of softmax(logits); the noise is drawn ahead.
        rollout.draw_noise(generator)
        for _ in collect(env, actor, rollout):
            pass  # a step is under way here; with many learners the next one would have its turn

        # 2. Rewards [T, N].
        rollout.finish()
        rollout.reward.copy_(reward(rollout))

        # 3. Advantages (GAE, Eq. 16):  δ_t = r_t + γ V_{t+1} − V_t,  Â_t = δ_t + γλ Â_{t+1},  cut where episodes end.
        #    The value target is Â_t + V_t.
        advantage = advantages(rollout.reward, rollout.value, rollout.first, CONFIG.gamma, CONFIG.gae_lambda)
        rollout.advantage.copy_(advantage)
        rollout.value_target.copy_(advantage + rollout.value[:-1])

        # 4. Learn: E epochs of minibatches, each a gradient step on PPO's objective (Eq. 7 and 9):
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

        # 5. The next rollout opens with the observation, and the memory if there were any, that this one ended with.
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
