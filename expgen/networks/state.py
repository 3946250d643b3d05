"""Networks and optimisers as flat dictionaries of tensors, as checkpoints store them."""

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor, nn

from expgen.errors import InputError


class Stateful(Protocol):
    """An object with tensors to checkpoint."""

    def state(self) -> dict[str, Tensor]:
        """Return every tensor that a resumed run needs, by name."""

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned."""


Part = nn.Module | Stateful  # something that a checkpoint contains


def state_of(parts: Mapping[str, Part]) -> dict[str, Tensor]:
    """Return the tensors of every part, named `part.tensor`."""
    state: dict[str, Tensor] = {}
    for name, part in parts.items():
        state |= with_prefix(name, part.state_dict() if isinstance(part, nn.Module) else part.state())
    return state


def load_parts(parts: Mapping[str, Part], state: Mapping[str, Tensor]) -> None:
    """Load what `state_of` returned; raise InputError if weights do not fit their network."""
    for name, part in parts.items():
        if isinstance(part, nn.Module):
            load_module(part, under_prefix(name, state), "the checkpoint")
        else:
            part.load_state(under_prefix(name, state))


def with_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors renamed to `prefix.name`."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def under_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose name starts with `prefix.`, without it: the inverse of `with_prefix`."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(prefix + ".")}


def load_module(module: nn.Module, tensors: Mapping[str, Tensor], what: str) -> None:
    """Load weights into `module`; raise InputError if they do not fit or are not finite."""
    check_fits(module, tensors, what)
    module.load_state_dict(tensors)


def check_fits(module: nn.Module, tensors: Mapping[str, Tensor], what: str) -> None:
    """Raise InputError, naming `what`, unless `tensors` are finite weights of `module` (maybe on the meta device)."""
    state = module.state_dict()
    own = {name: tuple(tensor.shape) for name, tensor in state.items()}
    given = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if own != given:
        name = min(set(own.items()) ^ set(given.items()))[0]
        raise InputError(
            f"{what} holds another network: {name} is {given.get(name, 'absent')}; accepted: {own.get(name, 'absent')}"
        )
    for name, tensor in tensors.items():
        is_same_kind = tensor.is_floating_point() == state[name].is_floating_point()  # counts are integers
        if not (is_same_kind and bool(tensor.isfinite().all())):
            raise InputError(f"{what} holds weights {name} that are not all finite numbers; accepted: finite weights")


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimiser's tensors, named `parameter_index.name`."""
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": value for index, entry in state.items() for name, value in entry.items()}


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Load what `optimizer_state` returned."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, _, entry = name.partition(".")
        parameter = parameters[int(index)]
        if value.shape == parameter.shape:  # fused optimisers need the parameter's memory layout
            value = torch.empty_like(parameter).copy_(value)
        state.setdefault(int(index), {})[entry] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
