"""Policy: an encoder, optional memory, and policy and value heads on the same features."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.deep import DeepEncoder
from expgen.networks.impala import ImpalaEncoder
from expgen.networks.memory import Memory
from expgen.networks.normalized import NormalizedEncoder
from expgen.networks.own_encoder import OWN_ENCODERS, OwnEncoder
from expgen.networks.small import ConvEncoder, SmallEncoder, orthogonal
from expgen.plugins import find
from expgen.settings import later_setting, setting

Network = TypeVar("Network", bound=nn.Module)
IMPALA_MIN_SIDE = 32  # pixels; "auto" uses the conv encoder for smaller images
ENCODERS = ("auto", "impala", "impoola", "conv", "small")  # the built-in ones
DENSE_IMAGES = ("minimaze",)  # each pixel is a maze cell: dense layers learn it too, several times faster
Encoder = ImpalaEncoder | ConvEncoder | SmallEncoder | OwnEncoder | NormalizedEncoder | DeepEncoder


@dataclass(frozen=True)
class NetworkConfig:
    """The shape of a policy network."""

    encoder: str = setting(
        "auto",
        "impala (auto for images of at least 32 × 32), impoola (averages over positions instead of flattening), "
        "conv (auto for smaller images), small: dense layers (auto for vectors and minimaze)",
    )
    width: int = setting(1, "factor on the channels of impala and impoola", low=1, high=64)
    extra_layers: int = setting(0, "dense layers after the encoder", low=0, high=100)
    features: int = setting(256, "width of the encoder's output and of the memory", low=1, high=2**14)
    memory: Literal["none", "gru"] = setting("none", "memory of the policy within an episode")
    normalize_obs: bool = later_setting(False, "normalise vectors by the mean and variance of those seen so far")

    def __post_init__(self) -> None:
        if self.encoder not in ENCODERS:
            find({**dict.fromkeys(ENCODERS), **OWN_ENCODERS}, "--encoder", self.encoder)


class PolicyOutput(NamedTuple):
    """A policy's output for T steps of N environments; networks with more heads return a longer tuple."""

    logits: Tensor  # [T, N, A]
    value: Tensor  # [T, N]
    state: Tensor  # [N, S] memory after the last step; S = 0 without memory


class Policy(nn.Module):
    """Maps observations to logits and values. Memory is passed in and returned; calls share no state."""

    def __init__(self, spec: EnvSpec, config: NetworkConfig) -> None:
        super().__init__()
        self.encoder = make_encoder(spec, config)
        self.encode: Callable[[Tensor], Tensor] = self.encoder.forward  # fast_networks may replace it
        self.memory = Memory(config.features, config.features) if config.memory == "gru" else None
        self.policy_head = nn.Linear(config.features, spec.num_actions)
        self.value_head = nn.Linear(config.features, 1)

    @property
    def state_size(self) -> int:
        """S: size of the memory per environment."""
        return self.memory.size if self.memory is not None else 0

    def forward(self, obs: Tensor, first: Tensor, state: Tensor) -> PolicyOutput:
        """Run the policy on `obs` `[T, N, …]` and `first` `[T, N]`; `state` `[N, S]` is the memory before step 0."""
        features, state = self.features(obs, first, state)
        return self.heads(features, state)

    def features(self, obs: Tensor, first: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features `[T, N, F]` that both heads read, and the memory after the last step."""
        num_steps, num_envs = first.shape
        features = self.encode(obs.flatten(0, 1)).view(num_steps, num_envs, -1)  # [T, N, F]
        return (features, state) if self.memory is None else self.memory(features, first, state)

    def heads(self, features: Tensor, state: Tensor) -> PolicyOutput:
        """Apply both heads to `features` `[T, N, F]`."""
        return PolicyOutput(self.policy_head(features), self.value_head(features).squeeze(-1), state)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw initial weights from `generator` only: heads are orthogonal, with gain 0.01 (policy) and 1 (value)."""
        self.encoder.initialise(generator)
        if self.memory is not None:
            self.memory.initialise(generator)
        orthogonal((self.policy_head,), 0.01, generator)
        orthogonal((self.value_head,), 1.0, generator)


def forward_memoryless(policy: Policy, obs: Tensor) -> PolicyOutput:
    """Run a policy without memory on `obs` `[T, N, …]`; the order of the first two axes does not matter."""
    first = torch.zeros(obs.shape[:2], dtype=torch.bool, device=obs.device)
    return policy(obs, first, torch.zeros(obs.shape[1], 0, device=obs.device))


def make_encoder(spec: EnvSpec, config: NetworkConfig) -> Encoder:
    """Build the encoder that `config` selects for observations of `spec`."""
    encoder: Any = _base_encoder(spec, config)
    if config.normalize_obs and spec.obs_dtype == "uint8":
        raise InputError(f"--normalize-obs is True but {spec.name} has images {spec.obs_shape}; accepted: False")
    if config.normalize_obs:
        encoder = NormalizedEncoder(encoder, spec.obs_shape)
    return DeepEncoder(encoder, config.features, config.extra_layers) if config.extra_layers else encoder


def _base_encoder(spec: EnvSpec, config: NetworkConfig) -> ImpalaEncoder | ConvEncoder | SmallEncoder | OwnEncoder:
    is_image = len(spec.obs_shape) == 3 and spec.obs_dtype == "uint8"
    choice = config.encoder
    if choice == "auto":
        is_large = is_image and min(spec.obs_shape[:2]) >= IMPALA_MIN_SIDE
        is_dense = not is_image or spec.name in DENSE_IMAGES
        choice = "impala" if is_large else "small" if is_dense else "conv"
    if choice not in ("impala", "impoola") and config.width != 1:
        raise InputError(f"--width is {config.width} but the encoder is {choice}; accepted: 1, or impala or impoola")
    if choice in OWN_ENCODERS:
        return OwnEncoder(choice, spec, config.features)
    if choice == "small":
        return SmallEncoder(spec.obs_shape, config.features, spec.obs_dtype == "uint8")
    if not is_image:
        what = f"{spec.name} has observations {spec.obs_shape}"
        raise InputError(f"--encoder is {choice} but {what}; accepted: small")
    if choice == "conv":
        return ConvEncoder(spec.obs_shape, config.features)
    return ImpalaEncoder(spec.obs_shape, config.features, config.width, is_pooled=choice == "impoola")


def make_policy(spec: EnvSpec, config: NetworkConfig, generator: torch.Generator, device: torch.device) -> Policy:
    """Return a policy with initial weights from `generator`."""
    return fresh_network(lambda: Policy(spec, config), generator, device)


def fresh_network(
    build: Callable[[], Network],
    generator: torch.Generator,
    device: torch.device,
    check: Callable[[nn.Module], None] = lambda network: None,
) -> Network:
    """Return a network initialised from `generator`; it is built on the meta device, without global random numbers.

    `check` is called with the network before memory is allocated, and may raise.
    """
    with torch.device("meta"):
        network = build()
    check(network)
    network = network.to_empty(device="cpu")
    network.initialise(generator)  # type: ignore[operator]
    return network.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def device_of(*networks: nn.Module) -> torch.device:
    """Return the device of the first weight of `networks`; the CPU if they have none."""
    return next((weight.device for network in networks for weight in network.parameters()), torch.device("cpu"))


def policies_in(network: nn.Module) -> list[Policy]:
    """Return every Policy in `network`, itself included."""
    return [module for module in network.modules() if isinstance(module, Policy)]
