"""Networks and optimisers as flat dictionaries of tensors, the form checkpoints keep them in."""

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor, nn

from expgen.errors import InputError


class Stateful(Protocol):
    """Has tensors that a checkpoint keeps."""

    def state(self) -> dict[str, Tensor]:
        """Everything a resumed run needs, by name."""

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from what `state` returned."""


Part = nn.Module | Stateful  # of what a checkpoint holds


def state_of(parts: Mapping[str, Part]) -> dict[str, Tensor]:
    """The tensors of every part, under `part.name`."""
    state: dict[str, Tensor] = {}
    for name, part in parts.items():
        state |= with_prefix(name, part.state_dict() if isinstance(part, nn.Module) else part.state())
    return state


def load_parts(parts: Mapping[str, Part], state: Mapping[str, Tensor]) -> None:
    """The inverse of `state_of`; an InputError if a network's weights belong to another network."""
    for name, part in parts.items():
        if isinstance(part, nn.Module):
            load_module(part, under_prefix(name, state), "the checkpoint")
        else:
            part.load_state(under_prefix(name, state))


def with_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors under `prefix.name`."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def under_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `with_prefix`: the tensors that stand under `prefix`."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(prefix + ".")}


def load_module(module: nn.Module, tensors: Mapping[str, Tensor], what: str) -> None:
    """Weights into `module`; an InputError if they belong to another network or are no finite numbers."""
    check_fits(module, tensors, what)
    module.load_state_dict(tensors)


def check_fits(module: nn.Module, tensors: Mapping[str, Tensor], what: str) -> None:
    """An InputError unless `tensors` are weights of `module`, which may be on the meta device; `what` names them."""
    state = module.state_dict()
    own = {name: tuple(tensor.shape) for name, tensor in state.items()}
    given = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if own != given:
        name = next(iter(sorted(set(own.items()) ^ set(given.items()))))[0]
        raise InputError(
            f"{what} holds another network: {name} is {given.get(name, 'absent')}; accepted: {own.get(name, 'absent')}"
        )
    for name, tensor in tensors.items():
        is_kind = tensor.is_floating_point() == state[name].is_floating_point()  # counts are whole numbers
        if not (is_kind and bool(tensor.isfinite().all())):
            raise InputError(f"{what} holds weights {name} that are not all finite numbers; accepted: weights that are")


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Every tensor of the optimiser, by position of its parameter."""
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": value for index, entry in state.items() for name, value in entry.items()}


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """The inverse of `optimizer_state`."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, _, entry = name.partition(".")
        parameter = parameters[int(index)]
        if value.shape == parameter.shape:  # fused optimisers want the parameter's own memory layout
            value = torch.empty_like(parameter).copy_(value)
        state.setdefault(int(index), {})[entry] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
