"""Save a learner to a checkpoint and resume it exactly."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from expgen.envs.vec_env import Snapshots
from expgen.networks.state import under_prefix, with_prefix
from expgen.reward.source import RewardSource
from expgen.rollout.level_choice import Director
from expgen.training.average import has_average
from expgen.training.checkpoint import Checkpoint, add_checkpoint
from expgen.training.episodes import EpisodeLog
from expgen.training.learner import Learner
from expgen.training.origin import FACT
from expgen.training.sessions import sessions_in


def save_learner(learner: Learner, folder: Path) -> None:
    """Write a checkpoint of `learner`, between two rollouts, to `folder`."""
    tensors: dict[str, Tensor] = {
        **learner.algorithm.state(),
        "generator": learner.generator.get_state(),
        "memory": learner.rollout.state[0],
    }
    for name, part in _parts(learner).items():
        tensors |= with_prefix(name, _as_tensors(part.state()))
    if isinstance(learner.env, Snapshots):
        tensors |= with_prefix("env", _as_tensors(learner.env.save()))
    facts: dict[str, Any] = {
        "learner": learner.name, "env_steps": learner.env_steps, "updates": learner.updates, "seconds": learner.seconds,
        "sessions": learner.sessions,
    }  # fmt: skip
    if learner.origin:
        facts[FACT] = dict(learner.origin)
    if learner.average is not None and learner.average.updates:
        tensors |= learner.average.state()
        facts |= learner.average.facts()
    add_checkpoint(folder, learner.env_steps, tensors, facts)


def resume_learner(learner: Learner, checkpoint: Checkpoint) -> None:
    """Continue exactly from `checkpoint`; games that cannot be restored start new episodes.

    A checkpoint of weights alone, as shipped agents have, continues with new optimisers, new games and a new seed; with
    the scale of the rewards if it has that.
    """
    tensors, facts = checkpoint
    learner.env_steps, learner.updates = facts["env_steps"], facts.get("updates", 0)
    learner.seconds = facts.get("seconds", 0.0)
    learner.sessions = sessions_in(facts)
    with learner.lane.updating():
        learner.algorithm.load_state(tensors)
        if learner.average is not None and has_average(checkpoint):
            learner.average.load_state(checkpoint)
    generator_state = tensors.get("generator")
    if generator_state is not None and generator_state.shape == learner.generator.get_state().shape:
        learner.generator.set_state(generator_state)
    else:  # weights alone, or the state of another kind of device's generator
        learner.generator.manual_seed(learner.generator.initial_seed() + learner.env_steps)
    if checkpoint.is_weights_alone:
        if scale := under_prefix("reward", tensors):
            learner.reward.load_state(_as_arrays(scale))
        return
    with learner.lane.updating():
        if isinstance(learner.env, Snapshots):
            learner.env.restore(_as_arrays(under_prefix("env", tensors)))
            learner.rollout.state[0].copy_(tensors["memory"])
    for name, part in _parts(learner).items():
        part.load_state(_as_arrays(under_prefix(name, tensors)))


def _parts(learner: Learner) -> dict[str, RewardSource | EpisodeLog | Director]:
    """Return the other objects whose state is saved, by their prefix in a checkpoint."""
    parts: dict[str, RewardSource | EpisodeLog | Director] = {"reward": learner.reward, "episodes": learner.episodes}
    if learner.reward.intrinsic is not None:
        parts["explored"] = learner.intrinsic_episodes
    if learner.director is not None:
        parts["levels"] = learner.director
    return parts


def _as_tensors(arrays: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}


def _as_arrays(tensors: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}
