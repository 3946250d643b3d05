"""Advantages by hand, and the parallel scan against a backward loop."""

import pytest
import torch

from expgen.rollout.gae import advantages, discounted_suffix_sum, normalized


def backward_loop(term: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    total, after = torch.zeros_like(term), torch.zeros_like(term[0])
    for t in reversed(range(len(term))):
        total[t] = after = term[t] + factor[t] * after
    return total


def test_advantages_by_hand_with_an_episode_boundary():
    """γ = 0.9, λ = 0.5; o_2 opens an episode, so V_2 is not bootstrapped into step 1."""
    reward = torch.tensor([[1.0], [2.0], [3.0]])
    value = torch.tensor([[0.5], [1.0], [1.5], [2.0]])
    first = torch.tensor([[False], [False], [True], [False]])
    # δ_2 = 3 + 0.9·2 − 1.5 = 3.3;  δ_1 = 2 − 1 = 1;  δ_0 = 1 + 0.9·1 − 0.5 = 1.4, A_0 = 1.4 + 0.45·1
    expected = torch.tensor([[1.85], [1.0], [3.3]])
    torch.testing.assert_close(advantages(reward, value, first, 0.9, 0.5), expected)


def test_advantages_do_not_bootstrap_an_episode_that_ends_with_the_rollout():
    reward, value = torch.tensor([[1.0]]), torch.tensor([[0.25], [100.0]])
    ended, goes_on = torch.tensor([[False], [True]]), torch.tensor([[True], [False]])
    assert advantages(reward, value, ended, 0.9, 0.5).item() == pytest.approx(0.75)
    assert advantages(reward, value, goes_on, 0.9, 0.5).item() == pytest.approx(90.75)  # first[0] is not used


@pytest.mark.parametrize("num_steps", [1, 2, 3, 4, 5, 7, 64, 511, 512])
def test_discounted_suffix_sum_equals_a_backward_loop(num_steps: int):
    generator = torch.Generator().manual_seed(num_steps)
    term = torch.randn(num_steps, 5, generator=generator, dtype=torch.float64)
    factor = torch.rand(num_steps, 5, generator=generator, dtype=torch.float64)
    factor = torch.where(torch.rand(num_steps, 5, generator=generator) < 0.1, 0.0, factor)
    factor[:, 0] = 0.999 * 0.95  # one environment whose episode never ends
    torch.testing.assert_close(discounted_suffix_sum(term, factor), backward_loop(term, factor), rtol=1e-10, atol=1e-10)


def test_advantages_in_float32_are_as_accurate_as_a_loop():
    generator = torch.Generator().manual_seed(0)
    reward, value = torch.randn(512, 8, generator=generator), torch.randn(513, 8, generator=generator)
    first = torch.rand(513, 8, generator=generator) < 0.02
    goes_on = (~first[1:]).double()
    delta = reward.double() + 0.999 * value[1:].double() * goes_on - value[:-1].double()
    expected = backward_loop(delta, 0.999 * 0.95 * goes_on)
    torch.testing.assert_close(advantages(reward, value, first, 0.999, 0.95).double(), expected, rtol=1e-4, atol=1e-4)


def test_normalized_uses_the_unbiased_std_and_adds_epsilon_to_it():
    advantage = torch.tensor([[1.0, 2.0], [3.0, 6.0]])  # mean 3, squares 4 + 1 + 0 + 9 = 14, std √(14/3)
    std = (14 / 3) ** 0.5
    expected = torch.tensor([[-2.0, -1.0], [0.0, 3.0]])
    torch.testing.assert_close(normalized(advantage, 0.0), expected / std)
    torch.testing.assert_close(normalized(advantage, 1.0), expected / (std + 1))


def test_end_value_bootstraps_a_share_of_the_last_value():
    """κ = 0.8, γ = 0.9, λ = 0.5; o_1 follows a success, o_3 a death: only the first is bootstrapped."""
    reward = torch.tensor([[0.0], [2.0], [1.0], [3.0]])
    value = torch.tensor([[0.5], [1.0], [1.5], [2.0], [4.0]])
    first = torch.tensor([[True], [True], [False], [True], [False]])
    survived = torch.tensor([[True], [True], [False], [False], [False]])  # slot 0 is not used
    # δ_0 = 0.8·0.5 − 0.5 = −0.1, and the trace is cut there
    # δ_2 = 1 − 1.5 = −0.5;  δ_1 = 2 + 0.9·1.5 − 1 = 2.35, A_1 = 2.35 + 0.45·(−0.5) = 2.125
    # δ_3 = 3 + 0.9·4 − 2 = 4.6
    expected = torch.tensor([[-0.1], [2.125], [-0.5], [4.6]])
    torch.testing.assert_close(advantages(reward, value, first, 0.9, 0.5, survived=survived, end_value=0.8), expected)


def test_advantages_ignore_how_episodes_end_with_end_value_0():
    generator = torch.Generator().manual_seed(3)
    reward, value = torch.randn(16, 4, generator=generator), torch.randn(17, 4, generator=generator)
    first = torch.rand(17, 4, generator=generator) < 0.3
    plain = advantages(reward, value, first, 0.9, 0.95)
    assert torch.equal(advantages(reward, value, first, 0.9, 0.95, survived=first, end_value=0.0), plain)
    assert not torch.equal(advantages(reward, value, first, 0.9, 0.95, survived=first, end_value=1.0), plain)
