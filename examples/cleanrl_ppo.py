"""PPO in one file, in the style of CleanRL, on our mazes in Gymnasium: python examples/cleanrl_ppo.py (two minutes)"""

import gymnasium
import torch
from torch import nn
from torch.distributions import Categorical

from expgen.rollout.gae import advantages, normalized  # importing expgen registers its environments in Gymnasium


def train(updates: int, T: int = 64, N: int = 64) -> None:
    envs = gymnasium.make_vec("expgen/minimaze", num_envs=N, levels=200, max_cells=3, time_limit=40)
    encoder = nn.Sequential(nn.Flatten(), nn.LazyLinear(256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
    actor, critic = nn.Linear(256, envs.single_action_space.n), nn.Sequential(nn.Linear(256, 1), nn.Flatten(0))
    network, obs = nn.ModuleList([encoder, actor, critic]), torch.as_tensor(envs.reset(seed=0)[0]) / 255
    encoder(obs)  # gives the lazy layer its shape
    adam = torch.optim.Adam(network.parameters(), lr=1e-3, eps=1e-5)
    for _ in range(updates):
        steps, first, solved = [], [torch.zeros(N, dtype=torch.bool)], []
        for _ in range(T):
            policy, value = Categorical(logits=actor(encoder(obs))), critic(encoder(obs))
            action = policy.sample()
            next_obs, reward, terminated, truncated, info = envs.step(action.numpy())
            steps.append((obs, action, policy.log_prob(action), value, torch.as_tensor(reward) / 10))
            first.append(torch.as_tensor(terminated | truncated))
            solved += info["solved"][terminated | truncated].tolist()
            obs = torch.as_tensor(next_obs) / 255
        *batch, value, reward = (torch.stack(tensors).detach() for tensors in zip(*steps))  # [T, N, …]
        value = torch.cat([value, critic(encoder(obs)).detach()[None]])  # [T+1, N]
        advantage = advantages(reward, value, torch.stack(first), gamma=0.99, gae_lambda=0.95)
        flat = [part.flatten(0, 1) for part in (*batch, normalized(advantage, 1e-8), advantage + value[:-1])]
        for rows in torch.cat([torch.randperm(T * N) for _ in range(3)]).split(T * N // 8):
            obs_b, action, old_log_prob, gae, target = (tensor[rows] for tensor in flat)
            policy = Categorical(logits=actor(encoder(obs_b)))
            ratio = (policy.log_prob(action) - old_log_prob).exp()
            loss = -torch.min(ratio * gae, ratio.clamp(0.8, 1.2) * gae).mean() - 0.01 * policy.entropy().mean()
            adam.zero_grad()
            (loss + 0.5 * (critic(encoder(obs_b)) - target).square().mean()).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            adam.step()
        print(f"solved {sum(solved) / len(solved):.0%} of {len(solved)} episodes")


if __name__ == "__main__":
    train(updates=60)
