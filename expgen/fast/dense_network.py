"""A memoryless SmallEncoder policy as three matrix products over one flat tensor of weights, forward and backward.

    h₁ = relu([x, 1] W₁)      x [B, I] float32, pixels centred; W₁ [I+1, F]
    h₂ = relu([h₁, 1] W₂)     W₂ [F+1, F]
    o  = H [h₂, 1]ᵀ           H [A+1, F+1] → o [A+1, B]: the logits, and the value in the last row

A constant 1 at the end of every row makes the biases part of the matrices, and their gradients part of the products.
Tests compare the results with `Policy.forward` and autograd. The policy's parameters become views of the flat tensor,
so the policy is scored, saved and loaded as usual. W₁ and W₂ are transposed relative to `nn.Linear`: MKL computes the
gradient of 363 x 256 weights a quarter faster that way.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from expgen.fast.matmul import matmul
from expgen.networks.actor_critic import Policy
from expgen.networks.small import SmallEncoder

_relu_backward = torch.ops.aten.threshold_backward.grad_input


class Layers(NamedTuple):
    """Matrix views of a flat tensor: the weights, their gradient, or a moment of Adam."""

    w1: Tensor  # [I+1, F], the bias in the last row
    w2: Tensor  # [F+1, F], likewise
    head: Tensor  # [A+1, F+1], the bias in the last column; the value head in the last row

    def by_name(self) -> dict[str, Tensor]:
        """Return views with the names and shapes of `Policy`'s parameters."""
        return {
            "encoder.linear1.weight": self.w1[:-1].t(),
            "encoder.linear1.bias": self.w1[-1],
            "encoder.linear2.weight": self.w2[:-1].t(),
            "encoder.linear2.bias": self.w2[-1],
            "policy_head.weight": self.head[:-1, :-1],
            "policy_head.bias": self.head[:-1, -1],
            "value_head.weight": self.head[-1:, :-1],
            "value_head.bias": self.head[-1, -1:],
        }


class Activations:
    """Buffers for one forward and backward pass over B rows, allocated once for each B."""

    def __init__(self, num_rows: int, features: int) -> None:
        self.h1, self.h2 = torch.ones(num_rows, features + 1), torch.ones(num_rows, features + 1)
        self.d1, self.d2 = torch.zeros(num_rows, features), torch.zeros(num_rows, features)  # ∂L/∂h


class DenseNetwork:
    """Holds the weights of `policy` and their gradient, each as one flat tensor."""

    def __init__(self, policy: Policy) -> None:
        encoder = policy.encoder
        assert isinstance(encoder, SmallEncoder)
        inputs, self.features = encoder.linear1.in_features, encoder.linear1.out_features
        outputs = policy.policy_head.out_features + 1
        shapes = ((inputs + 1, self.features), (self.features + 1, self.features), (outputs, self.features + 1))
        self.shapes = [torch.Size(shape) for shape in shapes]
        self.weight, self.gradient = self.flat(), self.flat()
        self.layers, self.gradients = self.layers_of(self.weight), self.layers_of(self.gradient)
        views = self.layers.by_name()
        for name, parameter in policy.named_parameters():
            views[name].copy_(parameter.data)
            parameter.data = views[name]
        self.activations: dict[int, Activations] = {}

    def flat(self) -> Tensor:
        """Return a flat tensor of zeros, one for each weight."""
        return torch.zeros(sum(shape.numel() for shape in self.shapes))

    def layers_of(self, flat: Tensor) -> Layers:
        """Return `flat` as matrices that share its memory."""
        parts = flat.split([shape.numel() for shape in self.shapes])
        return Layers(*(part.view(shape) for part, shape in zip(parts, self.shapes)))

    def forward(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """Return logits and value `[A+1, B]`, written to `out` if given, from `x` `[B, I+1]` whose rows end in 1."""
        at = self._activations_for(x)
        matmul(x, self.layers.w1, out=at.h1[:, :-1])
        matmul(at.h1.relu_(), self.layers.w2, out=at.h2[:, :-1])
        return torch.mm(self.layers.head, at.h2.relu_().t(), out=out)

    def backward(self, x: Tensor, d_output: Tensor) -> Tensor:
        """Return the flat gradient, from ∂L/∂o `[A+1, B]` and the activations of `forward(x)`, called just before.

        ∂L/∂H  = ∂o [h₂, 1]        ∂h₂ = ∂oᵀ H · 1{h₂ > 0}
        ∂L/∂W₂ = [h₁, 1]ᵀ ∂h₂      ∂h₁ = ∂h₂ W₂ᵀ · 1{h₁ > 0}
        ∂L/∂W₁ = [x, 1]ᵀ ∂h₁
        """
        layers, gradients, at = self.layers, self.gradients, self._activations_for(x)
        torch.mm(d_output, at.h2, out=gradients.head)
        torch.mm(d_output.t(), layers.head[:, :-1], out=at.d2)
        _relu_backward(at.d2, at.h2[:, :-1], 0, grad_input=at.d2)
        matmul(at.h1.t(), at.d2, out=gradients.w2)
        matmul(at.d2, layers.w2[:-1].t(), out=at.d1)
        _relu_backward(at.d1, at.h1[:, :-1], 0, grad_input=at.d1)
        matmul(x.t(), at.d1, out=gradients.w1)
        return self.gradient

    def _activations_for(self, x: Tensor) -> Activations:
        num_rows = len(x)
        if num_rows not in self.activations:
            self.activations[num_rows] = Activations(num_rows, self.features)
        return self.activations[num_rows]
