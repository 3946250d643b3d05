"""Compare our PPO with Stable-Baselines3's: same environment, network, batch sizes and threads.

    python benchmarks/sb3_comparison.py [minimaze | procgen:maze] [--rollouts N] [--threads N] [--precision bfloat16]

The two alternate, so that other processes slow both equally; the ratio is the median of the ratios per round. Needs the
`sb3` extra. Both use our environment: Stable-Baselines3 through `Sb3VecEnv`, without a Monitor; it moves the pixels'
channels first, as its policies expect.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import gymnasium
import torch
from stable_baselines3 import PPO as OtherPPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from expgen.envs.sb3_env import Sb3VecEnv
from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import make_encoder
from expgen.runs.config import TrainConfig
from expgen.runs.make_config import make_config
from expgen.runs.plan import build_learner, plans_of
from expgen.training.resources import Resources


class SameEncoder(BaseFeaturesExtractor):
    """The layers of our encoder with Stable-Baselines3's inputs: float pixels in [0, 1], channels first."""

    def __init__(self, observation_space: gymnasium.spaces.Box, spec: EnvSpec, config: TrainConfig) -> None:
        super().__init__(observation_space, config.network.features)
        self.encoder = make_encoder(spec, config.network)

    def forward(self, observations: Tensor) -> Tensor:
        if hasattr(self.encoder, "stages"):
            for stage in self.encoder.stages:
                observations = stage(observations)
            return torch.relu(self.encoder.linear(torch.relu(observations).flatten(1)))
        return torch.relu(self.encoder.linear2(torch.relu(self.encoder.linear1(observations.flatten(1)))))


class Quiet(BaseCallback):
    """A callback that does nothing, because `_setup_learn` requires one."""

    def _on_step(self) -> bool:
        return True


def ours(config: TrainConfig, threads: int) -> Callable[[], None]:
    """Return a function that collects one rollout and updates from it with expgen."""
    learner = build_learner(config, plans_of(config)[0], Resources(torch.device("cpu"), threads, threads, 1))

    def iterate() -> None:
        for _ in learner.iterate():
            pass

    return iterate


def theirs(config: TrainConfig, threads: int) -> Callable[[], None]:
    """Return a function that does the same with Stable-Baselines3."""
    options = {"levels": config.train_set, "seed": config.seed, "threads": threads}
    env = Sb3VecEnv(config.env, config.envs, **options)
    ppo = config.algorithm
    model = OtherPPO(
        "CnnPolicy",
        env,
        learning_rate=ppo.learning_rate,
        n_steps=config.rollout_steps,
        batch_size=config.envs * config.rollout_steps // ppo.minibatches,
        n_epochs=ppo.epochs,
        gamma=ppo.gamma,
        gae_lambda=ppo.gae_lambda,
        clip_range=ppo.clip,
        clip_range_vf=ppo.clip,
        ent_coef=ppo.entropy_coef,
        vf_coef=ppo.value_coef,
        max_grad_norm=ppo.max_grad_norm,
        device="cpu",
        policy_kwargs={
            "features_extractor_class": SameEncoder,
            "features_extractor_kwargs": {"spec": env.env.games.spec, "config": config},
            "net_arch": [],
            "activation_fn": nn.ReLU,
        },
    )
    _, callback = model._setup_learn(10**9, Quiet())
    assert model.env is not None  # `env`, wrapped to move the channels

    def iterate() -> None:
        model.collect_rollouts(model.env, callback, model.rollout_buffer, config.rollout_steps)
        model.train()

    assert isinstance(model, BaseAlgorithm)
    return iterate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env", nargs="?", default="minimaze")
    parser.add_argument("--rollouts", type=int, default=8, help="number of rollouts to time")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, help="steps per rollout (default: laptop preset)")
    parser.add_argument("--features", type=int, help="width of the network (default 256)")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], help="of our convolutions")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    changes = {"rollout_steps": arguments.steps} if arguments.steps else {}
    changes |= {"features": arguments.features} if arguments.features else {}
    changes |= {"precision": arguments.precision} if arguments.precision else {}
    config = make_config(arguments.env, "ppo", "laptop", minibatch_order="shuffled", **changes)
    contenders = {"expgen": ours(config, arguments.threads), "stable-baselines3": theirs(config, arguments.threads)}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for round_number in range(arguments.rollouts + 1):
        for name, iterate in contenders.items():
            began = time.perf_counter()
            iterate()
            if round_number:  # the first is a warm-up
                seconds[name].append(time.perf_counter() - began)
    steps = config.envs * config.rollout_steps
    rate = {name: steps / statistics.median(times) for name, times in seconds.items()}
    for name, value in rate.items():
        print(f"{config.env}  {name:<18} {value:>10,.0f} steps/s, median of {arguments.rollouts} × {steps:,} steps")
    ratio = [other / own for own, other in zip(seconds["expgen"], seconds["stable-baselines3"])]
    print(f"{config.env}  ratio {statistics.median(ratio):.2f}, rounds {min(ratio):.2f} to {max(ratio):.2f}")


if __name__ == "__main__":
    main()
