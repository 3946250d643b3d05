"""Memory over whole sequences against a step-by-step GRU."""

import pytest
import torch
from torch import Tensor

from expgen.networks.memory import Memory

F, S, N = 3, 4, 5


def make_memory() -> Memory:
    memory = Memory(F, S).double()
    generator = torch.Generator().manual_seed(0)
    memory.initialise(generator)
    for name, parameter in memory.named_parameters():
        if "bias" in name:
            parameter.data.normal_(0, 0.5, generator=generator)
    return memory


def gru_step(memory: Memory, x: Tensor, state: Tensor) -> Tensor:
    """r, z = σ(…), n = tanh(W x + b + r · (U h + c)), h' = (1 − z) n + z h."""
    weights = dict(memory.gru.named_parameters())
    from_x = (x @ weights["weight_ih_l0"].T + weights["bias_ih_l0"]).chunk(3, 1)
    from_state = (state @ weights["weight_hh_l0"].T + weights["bias_hh_l0"]).chunk(3, 1)
    reset = torch.sigmoid(from_x[0] + from_state[0])
    keep = torch.sigmoid(from_x[1] + from_state[1])
    new = torch.tanh(from_x[2] + reset * from_state[2])
    return (1 - keep) * new + keep * state


def step_by_step(memory: Memory, x: Tensor, first: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    output = []
    for t in range(len(x)):
        state = torch.where(first[t].unsqueeze(1), 0.0, state)
        state = gru_step(memory, x[t], state)
        output.append(state)
    return torch.stack(output), state


def random_case(num_steps: int, chance: float) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(num_steps)
    x = torch.randn(num_steps, N, F, generator=generator, dtype=torch.float64)
    first = torch.rand(num_steps, N, generator=generator) < chance
    state = torch.randn(N, S, generator=generator, dtype=torch.float64)
    if 0 < chance < 1:
        first[0] = torch.tensor([True, False, True, False, False])
    return x, first, state


@pytest.mark.parametrize("chance", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("num_steps", [1, 2, 3, 17])
def test_memory_over_a_sequence_equals_step_by_step(num_steps: int, chance: float):
    memory = make_memory()
    x, first, state = random_case(num_steps, chance)

    answers = []
    for forward in (memory, lambda *inputs: step_by_step(memory, *inputs)):
        leaves = [x.clone().requires_grad_(), state.clone().requires_grad_(), *memory.parameters()]
        output, after = forward(leaves[0], first, leaves[1])
        weight = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).view_as(output)
        loss = (weight * output).sum() + after.square().sum()
        answers.append((output, after, *torch.autograd.grad(loss, leaves)))
    for got, expected in zip(*answers, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-11)


def test_memory_over_a_rollout_equals_two_calls_with_carried_state():
    memory = make_memory()
    x, first, state = random_case(9, 0.3)
    whole, after = memory(x, first, state)
    head, carried = memory(x[:4], first[:4], state)
    tail, end = memory(x[4:], first[4:], carried)
    torch.testing.assert_close(whole, torch.cat([head, tail]))
    torch.testing.assert_close(after, end)


def test_memory_is_separate_per_environment_and_episode():
    memory = make_memory()
    x, first, state = random_case(8, 0.0)
    first[5, 2] = True
    before, _ = memory(x, first, state)
    x[:5, 2] += 1  # the previous episode of environment 2
    state[2] += 1
    after, _ = memory(x, first, state)
    changed = (before != after).any(-1)
    assert changed[:5, 2].all()
    changed[:5, 2] = False
    assert not changed.any()


def test_memory_initialisation_is_orthogonal_with_zero_biases():
    memory = Memory(6, 6)
    memory.initialise(torch.Generator().manual_seed(0))
    for name, parameter in memory.gru.named_parameters():
        if "bias" in name:
            assert not parameter.any()
        else:  # a stacked 18 × 6 matrix with orthonormal columns
            torch.testing.assert_close(parameter.T @ parameter, torch.eye(6), atol=1e-5, rtol=0)
