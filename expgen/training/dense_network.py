"""A memoryless SmallEncoder policy as matrix products over one flat tensor of weights, forward and backward.

    h₁ = relu(x W₁ + b₁)      x [B, I] float32, pixels centred
    h₂ = relu(h₁ W₂ + b₂)     h [B, F]
    o  = H h₂ᵀ + c            o [A+1, B]: the logits, and the value in the last row

`Policy.forward` and autograd are the plain path; tests hold the two together. The policy's parameters become views of
the flat tensor, so the policy goes on being the one that is scored, saved and loaded. W₁ and W₂ lie transposed to
`nn.Linear`'s: MKL forms ∂L/∂W₁ of 363 x 256 a quarter faster that way. H is as in `nn.Linear`, policy over value.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from expgen.networks.actor_critic import Policy
from expgen.networks.small import SmallEncoder

_relu_backward = torch.ops.aten.threshold_backward.grad_input


class Layers(NamedTuple):
    """A flat tensor as the network's matrices: weights, their gradient, or a moment of Adam's."""

    w1: Tensor  # [I, F]
    w2: Tensor  # [F, F]
    head: Tensor  # [A+1, F]
    b1: Tensor  # [F]
    b2: Tensor  # [F]
    head_bias: Tensor  # [A+1]

    def by_name(self) -> dict[str, Tensor]:
        """The same memory under the names and in the shapes of `Policy`'s parameters."""
        return {
            "encoder.linear1.weight": self.w1.t(),
            "encoder.linear1.bias": self.b1,
            "encoder.linear2.weight": self.w2.t(),
            "encoder.linear2.bias": self.b2,
            "policy_head.weight": self.head[:-1],
            "policy_head.bias": self.head_bias[:-1],
            "value_head.weight": self.head[-1:],
            "value_head.bias": self.head_bias[-1:],
        }


class Activations:
    """What one forward pass over B rows leaves for the backward one; allocated once for each B."""

    def __init__(self, num_rows: int, features: int, outputs: int) -> None:
        self.h1, self.h2 = torch.zeros(num_rows, features), torch.zeros(num_rows, features)
        self.d1, self.d2 = torch.zeros(num_rows, features), torch.zeros(num_rows, features)  # ∂L/∂h
        self.output = torch.zeros(outputs, num_rows)


class DenseNetwork:
    """Owns the weights of `policy` and their gradient, each as one flat tensor."""

    def __init__(self, policy: Policy) -> None:
        encoder = policy.encoder
        assert isinstance(encoder, SmallEncoder)
        inputs, features, outputs = encoder.linear1.in_features, encoder.linear1.out_features, 1
        outputs += policy.policy_head.out_features
        self.shapes = Layers(  # type: ignore[arg-type]
            (inputs, features), (features, features), (outputs, features), (features,), (features,), (outputs,)
        )
        self.weight, self.gradient = self.flat(), self.flat()
        self.layers, self.slopes = self.layers_of(self.weight), self.layers_of(self.gradient)
        views = self.layers.by_name()
        for name, parameter in policy.named_parameters():
            views[name].copy_(parameter.data)
            parameter.data = views[name]
        self.activations: dict[int, Activations] = {}

    def flat(self) -> Tensor:
        """Zeros, one for each weight."""
        return torch.zeros(sum(torch.Size(shape).numel() for shape in self.shapes))  # type: ignore[arg-type]

    def layers_of(self, flat: Tensor) -> Layers:
        """`flat` as matrices, sharing its memory."""
        sizes = [torch.Size(shape).numel() for shape in self.shapes]  # type: ignore[arg-type]
        return Layers(*(part.view(shape) for part, shape in zip(flat.split(sizes), self.shapes)))

    def forward(self, x: Tensor) -> Tensor:
        """`x` `[B, I]` → logits and value `[A+1, B]`, in memory that the next pass over B rows overwrites."""
        layers, at = self.layers, self._activations_for(x)
        torch.addmm(layers.b1, x, layers.w1, out=at.h1).relu_()
        torch.addmm(layers.b2, at.h1, layers.w2, out=at.h2).relu_()
        return torch.addmm(layers.head_bias.unsqueeze(1), layers.head, at.h2.t(), out=at.output)

    def backward(self, x: Tensor, d_output: Tensor) -> Tensor:
        """The flat gradient, from ∂L/∂o `[A+1, B]` and the activations that `forward(x)` just left.

        ∂L/∂H = ∂o h₂,  ∂h₂ = ∂oᵀ H · 1{h₂ > 0},  ∂L/∂W₂ = h₁ᵀ ∂h₂,  ∂h₁ = ∂h₂ W₂ᵀ · 1{h₁ > 0},  ∂L/∂W₁ = xᵀ ∂h₁.
        """
        layers, slopes, at = self.layers, self.slopes, self._activations_for(x)
        torch.mm(d_output, at.h2, out=slopes.head)
        torch.sum(d_output, 1, out=slopes.head_bias)
        torch.mm(d_output.t(), layers.head, out=at.d2)
        _relu_backward(at.d2, at.h2, 0, grad_input=at.d2)
        torch.mm(at.h1.t(), at.d2, out=slopes.w2)
        torch.sum(at.d2, 0, out=slopes.b2)
        torch.mm(at.d2, layers.w2.t(), out=at.d1)
        _relu_backward(at.d1, at.h1, 0, grad_input=at.d1)
        torch.mm(x.t(), at.d1, out=slopes.w1)
        torch.sum(at.d1, 0, out=slopes.b1)
        return self.gradient

    def _activations_for(self, x: Tensor) -> Activations:
        num_rows = len(x)
        if num_rows not in self.activations:
            features, outputs = self.layers.w2.shape[0], self.layers.head.shape[0]
            self.activations[num_rows] = Activations(num_rows, features, outputs)
        return self.activations[num_rows]
