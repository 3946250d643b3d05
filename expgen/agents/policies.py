"""Read the policies of an agent from their checkpoints, with live or averaged weights."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import torch

from expgen.agents.description import AgentDescription, PolicyDescription
from expgen.agents.temperature import with_temperature
from expgen.algorithms.recipes import recipe_of
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError, check_choice
from expgen.fast.fast_networks import for_play
from expgen.files import read_json
from expgen.networks.actor_critic import Policy, fresh_network
from expgen.networks.state import check_fits, load_module
from expgen.training.average import Weights, has_average, policy_weights
from expgen.training.checkpoint import Checkpoint, digest_of, latest_checkpoint, read_checkpoint
from expgen.training.origin import check_origin, origin_of
from expgen.training.resources import use_device

CARD = "card.json"  # beside a bundled agent: its description and the checksums of its weights


def load_policies(description: AgentDescription, names: Sequence[str], device: str) -> tuple[list[Policy], int]:
    """Return the frozen policies `names`, at their temperatures, and the sum of their training steps."""
    policies, env_steps = policies_as_trained(description, names, device)
    tempered = [
        with_temperature(policy, description.temperature_of(name)) for name, policy in zip(names, policies, strict=True)
    ]
    return tempered, env_steps


def policies_as_trained(description: AgentDescription, names: Sequence[str], device: str) -> tuple[list[Policy], int]:
    """Return the frozen policies `names`, at a temperature of 1, and the sum of their training steps.

    Those without averaged weights play with live ones, if any policy of the agent has averaged weights.
    """
    check_weights(description, [*dict.fromkeys((*names, *description.trained()))])
    policies, env_steps = [], 0
    for name in names:
        checkpoint = checkpoint_of(description, name)
        described, what = description.policies[name], f"{description.folder} {name}"
        policies.append(policy_from(checkpoint, described, description.spec, device, what, description.weights))
        env_steps += int(checkpoint.facts["env_steps"])
    return policies, env_steps


def with_weights(description: AgentDescription, weights: Weights | None) -> AgentDescription:
    """Return the agent with these weights; None leaves them as they are."""
    chosen: Any = check_choice("--weights", weights or description.weights, get_args(Weights))
    return replace(description, weights=chosen)


def with_weights_of(description: AgentDescription, weights: Weights | None, learner: str | None) -> AgentDescription:
    """Return the agent with these weights; raise InputError if the `learner` that they are asked for lacks them.

    A `learner` that is no policy stands for all of them.
    """
    chosen = with_weights(description, weights)
    if weights is not None:
        check_weights(chosen, [learner] if learner in chosen.policies else chosen.trained())
    return chosen


def check_weights(description: AgentDescription, names: Sequence[str]) -> None:
    """Raise InputError if the agent plays with averaged weights and none of its policies `names` has them."""
    average = description.weights == "average"
    if average and not any(has_average(checkpoint_of(description, name)) for name in names):
        which = names[0] if len(names) == 1 else "any policy"
        problem = f"--weights is average but {description.folder} has no averaged weights of {which}"
        raise InputError(f"{problem}; accepted: live, or a run trained with --average")


def averages_in(description: AgentDescription, names: Sequence[str]) -> list[str]:
    """Return those of the policies `names` that play with averaged weights.

    A bundle stores averaged weights as live ones, and its card lists the policies; training further ends that.
    """
    if description.weights == "average":
        return [name for name in names if has_average(checkpoint_of(description, name))]
    card = description.folder / CARD
    listed = read_card(card).get("trained", {}).get("averaged", []) if card.exists() else []
    return [name for name in names if name in listed and checkpoint_of(description, name).is_weights_alone]


def policy_from(
    checkpoint: Checkpoint,
    described: PolicyDescription,
    spec: EnvSpec,
    device: str,
    what: str,
    weights: Weights = "live",
) -> Policy:
    """Return the frozen policy of a checkpoint with these `weights`; `what` names the checkpoint in errors."""
    recipe, tensors = recipe_of(described.algo), policy_weights(checkpoint, weights)
    build = partial(recipe.build_policy, spec, described.network, described.algorithm)
    check = partial(check_fits, tensors=tensors, what=what)
    policy = fresh_network(build, torch.Generator(), use_device(device), check)
    load_module(policy, tensors, what)
    return for_play(policy)


def policies_from(file: Path, described: PolicyDescription, spec: EnvSpec, device: str) -> dict[Weights, Policy]:
    """Return the policies of the checkpoint `file`: with live weights and, if it has them, with averaged weights."""
    checkpoint = read_checkpoint(file)
    kinds: list[Weights] = ["live", "average"] if has_average(checkpoint) else ["live"]
    return {weights: policy_from(checkpoint, described, spec, device, str(file), weights) for weights in kinds}


def checkpoint_of(description: AgentDescription, name: str) -> Checkpoint:
    """Return the newest valid checkpoint of a policy; raise InputError if there is none or its checksum is wrong."""
    if name not in description.policies:
        raise InputError(f"--learner is {name!r}; accepted: {', '.join(description.policies)}")
    folder = description.checkpoints_of(name)
    found = latest_checkpoint(folder)
    if found is None:
        trained = ", ".join(check_trained(description, description.folder))
        raise InputError(f"{description.folder} has no checkpoint of {name!r}; accepted: {trained}")
    _check_checksum(description.folder / CARD, folder, found)
    policy = description.policies[name]
    origin = origin_of(description.env, policy.algo, policy.seed, policy.levels)
    check_origin(found, origin, f"{description.folder} {name}")
    return found


def check_trained(description: AgentDescription, name: object) -> list[str]:
    """Return the names of the trained policies; raise InputError, with `name` for the agent, if there are none."""
    trained = description.trained()
    if not trained:
        raise InputError(f"{name} has no checkpoint yet; accepted: a run that has trained")
    return trained


def _check_checksum(card: Path, folder: Path, checkpoint: Checkpoint) -> None:
    """Raise InputError if the weights of a bundle differ from the checksum in its card."""
    if not checkpoint.is_weights_alone or not card.exists():
        return
    digest = digest_of(checkpoint.tensors)
    if read_card(card).get("weights", {}).get(folder.name, digest) != digest:
        raise InputError(f"the weights in {folder} do not match the checksum in {card}")


def read_card(file: Path) -> dict[str, Any]:
    """Return the contents of a bundle's card; raise InputError if it is damaged."""
    try:
        card = read_json(file)
    except (OSError, InputError):
        card = None
    parts = ("weights", "trained", "files")
    is_valid = isinstance(card, dict) and all(isinstance(card.get(name, {}), dict) for name in parts)
    if not (is_valid and isinstance(card.get("trained", {}).get("averaged", []), list)):
        raise InputError(f"{file} is damaged; accepted: a card that scripts/bundle wrote")
    return card
