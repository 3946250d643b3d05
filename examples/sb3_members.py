"""ExpGen with Stable-Baselines3: SB3's PPO trains three members and an explorer; our agent plays them on unseen levels.

python examples/sb3_members.py (two minutes; needs pip install 'expgen[sb3]')
"""

import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import expgen

MAZES = {"max_cells": 3, "time_limit": 40}
PPO_SETTINGS = {"n_steps": 64, "batch_size": 256, "n_epochs": 4, "learning_rate": 1e-3, "ent_coef": 0.01}


def intrinsic_maze() -> gymnasium.Env:
    """A maze whose reward is the intrinsic reward."""
    return expgen.KnnRewardWrapper(gymnasium.make("expgen/minimaze", levels=200, **MAZES), expgen.KnnConfig(pool=1))


def train(steps: int) -> tuple[list[PPO], PPO]:
    """Train members with different seeds on the mazes' reward, and an explorer on r_I."""
    mazes = expgen.Sb3VecEnv("minimaze", 32, levels=200, **MAZES, goal_reward=1.0)
    members = [PPO("MlpPolicy", mazes, seed=seed, **PPO_SETTINGS).learn(steps) for seed in range(3)]
    return members, PPO("MlpPolicy", make_vec_env(intrinsic_maze, 8), **PPO_SETTINGS).learn(steps)


def main(steps: int = 60_000, episodes: int = 200) -> None:
    members, explorer = train(steps)
    unseen = expgen.make_env("minimaze", levels=range(1000, 1200), num_envs=32, **MAZES)
    agent = expgen.consensus_agent(members, explorer, unseen, min_agree=3)
    for name, player in {"one policy": expgen.consensus_agent(members[:1], explorer, unseen), "ExpGen": agent}.items():
        scores = expgen.evaluate(player, unseen, episodes)
        print(f"{name}: solves {scores.solved_rate:.0%} of {episodes} unseen mazes")


if __name__ == "__main__":
    main()
