"""Descent: some weights, the Adam that moves them and the clip on their gradient."""

from collections.abc import Iterable, Mapping

from torch import Tensor, nn
from torch.optim import Adam

from expgen.networks.state import load_optimizer, optimizer_state


class Descent:
    """Moves its own weights down a loss, and no others that the loss depends on."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        learning_rate: float,
        epsilon: float,
        max_grad_norm: float | None = None,
        fused: bool = False,
    ) -> None:
        """`fused`: Adam steps in one operation, which spoils what lies between weights that are views of one tensor."""
        self.parameters = list(parameters)
        self.max_grad_norm = max_grad_norm
        self.adam = Adam(self.parameters, learning_rate, eps=epsilon, fused=fused)

    def step(self, loss: Tensor) -> Tensor:
        """One step; the global norm of the gradient before it was clipped."""
        self.adam.zero_grad(set_to_none=True)
        loss.backward(inputs=self.parameters)
        if self.max_grad_norm is None:
            norm = nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])
        else:
            norm = nn.utils.clip_grad_norm_(self.parameters, self.max_grad_norm)
        self.adam.step()
        return norm

    def state(self) -> dict[str, Tensor]:
        """Adam's moments."""
        return optimizer_state(self.adam)

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from `state`."""
        load_optimizer(self.adam, state)
