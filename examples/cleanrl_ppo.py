"""PPO in one file, as CleanRL has it, on our mazes through Gymnasium: `python examples/cleanrl_ppo.py`, two minutes."""

import gymnasium
import torch
from torch import nn
from torch.distributions import Categorical

from expgen.rollout.gae import advantages, normalized  # importing expgen tells Gymnasium of its games


def train(updates: int, T: int = 64, N: int = 64) -> None:
    envs = gymnasium.make_vec("expgen/minimaze", num_envs=N, levels=200, max_cells=3, time_limit=40)
    body = nn.Sequential(nn.Flatten(), nn.LazyLinear(256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
    actor, critic = nn.Linear(256, envs.single_action_space.n), nn.Sequential(nn.Linear(256, 1), nn.Flatten(0))
    network, obs = nn.ModuleList([body, actor, critic]), torch.as_tensor(envs.reset(seed=0)[0]) / 255
    body(obs)  # gives the lazy layer its shape
    adam = torch.optim.Adam(network.parameters(), lr=1e-3, eps=1e-5)
    for _ in range(updates):
        kept, first, solved = [], [torch.zeros(N, dtype=torch.bool)], []
        for _ in range(T):
            policy, value = Categorical(logits=actor(body(obs))), critic(body(obs))
            action = policy.sample()
            seen, reward, terminated, truncated, info = envs.step(action.numpy())
            kept.append((obs, action, policy.log_prob(action), value, torch.as_tensor(reward) / 10))
            first.append(torch.as_tensor(terminated | truncated))
            solved += info["solved"][terminated | truncated].tolist()
            obs = torch.as_tensor(seen) / 255
        *batch, value, reward = (torch.stack(part).detach() for part in zip(*kept))  # [T, N, …]
        value = torch.cat([value, critic(body(obs)).detach()[None]])  # [T+1, N]
        advantage = advantages(reward, value, torch.stack(first), gamma=0.99, gae_lambda=0.95)
        flat = [part.flatten(0, 1) for part in (*batch, normalized(advantage, 1e-8), advantage + value[:-1])]
        for rows in torch.cat([torch.randperm(T * N) for _ in range(3)]).split(T * N // 8):
            at, action, log_prob, gain, target = (part[rows] for part in flat)
            policy = Categorical(logits=actor(body(at)))
            ratio = (policy.log_prob(action) - log_prob).exp()
            loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean() - 0.01 * policy.entropy().mean()
            adam.zero_grad()
            (loss + 0.5 * (critic(body(at)) - target).square().mean()).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            adam.step()
        print(f"solved {sum(solved) / len(solved):.0%} of {len(solved)} episodes")


if __name__ == "__main__":
    train(updates=60)
