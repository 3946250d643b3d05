"""User-defined encoders, registered by `expgen.register("encoder", NAME)` and selected by `--encoder NAME`."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError, error_line

OWN_ENCODERS: dict[str, Callable[[tuple[int, ...], int], nn.Module]] = {}


class OwnEncoder(nn.Module):
    """Wraps a module built by a user's class from `obs_shape` and `features`; its layers choose their initial weights.

    It maps `[B, *obs_shape]`, uint8 images (height, width, channel) or float32 vectors, to `[B, features]`.
    """

    def __init__(self, name: str, spec: EnvSpec, features: int) -> None:
        super().__init__()
        self._build = partial(OWN_ENCODERS[name], spec.obs_shape, features)
        what = f"--encoder is {name!r}, which"
        try:
            self.encoder = self._build_seeded(0)
            with torch.no_grad(), torch.device("cpu"):
                obs = torch.zeros(2, *spec.obs_shape, dtype=getattr(torch, spec.obs_dtype))
                shape = tuple(self.encoder.eval()(obs).shape)
        except Exception as error:  # the user's code may raise anything
            raise InputError(f"{what} fails on observations {spec.obs_shape}: {error_line(error)}") from error
        if shape != (2, features):
            raise InputError(f"{what} maps 2 observations to {shape}; accepted: {(2, features)}, as --features says")
        self.encoder.train()

    def forward(self, obs: Tensor) -> Tensor:
        return self.encoder(obs)

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Copy the weights of a newly built encoder, with random numbers from `generator` only."""
        fresh = self._build_seeded(int(torch.randint(2**31, (), generator=generator)))
        for own, new in zip(_tensors(self.encoder), _tensors(fresh), strict=True):
            own.copy_(new)

    def _build_seeded(self, seed: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            torch.manual_seed(seed)
            return self._build()


def _tensors(module: nn.Module) -> list[Tensor]:
    return [*module.parameters(), *module.buffers()]
