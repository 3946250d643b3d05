"""UcbBandit: its bounds by hand, and its choices among synthetic arms."""

from math import log, sqrt

import pytest
import torch

from expgen.algorithms.ucb_drac import UcbBandit


def test_bandit_bounds_match_the_formula_and_ties_go_to_the_first_arm():
    bandit = UcbBandit(3, exploration=0.1, window=2)
    assert bandit.bounds().tolist() == [0, 0, 0] and bandit.pull() == 0  # ln 1 = 0
    bandit.reward(-1.0)
    expected = [-1 + 0.1 * sqrt(log(2) / 2), 0.1 * sqrt(log(2)), 0.1 * sqrt(log(2))]
    assert bandit.bounds().tolist() == pytest.approx(expected)
    assert bandit.pull() == 1  # ties go to the first arm
    bandit.reward(0.5)
    assert bandit.bounds()[1].item() == pytest.approx(0.5 + 0.1 * sqrt(log(3) / 2))


def test_bandit_quality_is_the_mean_of_the_last_returns():
    bandit = UcbBandit(2, exploration=0.0, window=2)
    for value in (9.0, 1.0, 2.0):
        bandit.arm[:] = 1
        bandit.reward(value)
    assert bandit.bounds().tolist() == [0, 1.5] and bandit.pulls.tolist() == [1, 4] and bandit.total.item() == 4


@pytest.mark.parametrize("tries_each", [False, True])
@pytest.mark.parametrize("best", [0, 3, 7])
def test_bandit_finds_the_best_of_synthetic_arms(best: int, tries_each: bool):
    generator = torch.Generator().manual_seed(best)
    bandit, counts = UcbBandit(8, exploration=0.5, window=10, tries_each=tries_each), torch.zeros(8)
    for _ in range(400):
        arm = bandit.pull()
        counts[arm] += 1
        mean = 1.0 if arm == best else 0.3
        bandit.reward(mean + 0.2 * torch.randn((), generator=generator).item())
    assert counts.argmax() == best and counts[best] > 200 and (counts > 0).all()


def test_bandit_leaves_a_good_first_arm_only_with_tries_each():
    """With the authors' initial values and c = 0.1, a return of 1 exceeds the bonus of arms that were never pulled."""
    for tries_each, expected in ((False, [0] * 12), (True, [0, 1, 2, 3, 2, 2, 2, 2, 2, 2, 2, 2])):
        bandit, pulled = UcbBandit(4, exploration=0.1, window=10, tries_each=tries_each), []
        for _ in range(12):
            pulled.append(bandit.pull())
            bandit.reward(2.0 if pulled[-1] == 2 else 1.0)
        assert pulled == expected


def test_bandit_keeps_the_arm_that_it_uses_when_returns_become_positive():
    """Arm 0 is used again if the first return exceeds c (√(ln 2) − √(ln 2 / 2)) = 0.0244; 0.4 exceeds c √(ln n)."""
    for returns, expected in (
        ([0.024, 0.4, 0.4, 0.4, 0.4], [0, 1, 1, 1, 1]),
        ([0.025, 0.4, 0.4, 0.4, 0.4], [0, 0, 0, 0, 0]),
        ([-0.3, 0.0, 0.4, 0.4, 0.4], [0, 1, 2, 2, 2]),  # 0 + c √(ln 3 / 2) = 0.074 is less than c √(ln 3) = 0.105
    ):
        bandit, pulled = UcbBandit(8, exploration=0.1, window=10), []
        for value in returns:
            pulled.append(bandit.pull())
            bandit.reward(value)
        assert pulled == expected


def test_bandit_adapts_when_the_best_arm_changes():
    bandit, last = UcbBandit(2, exploration=0.3, window=5), []
    for step in range(300):
        arm = bandit.pull()
        last.append(arm)
        bandit.reward(float(arm == (step >= 100)))
    assert sum(last[:100]) < 20 and sum(last[-50:]) > 40


def test_restored_bandit_continues_identically():
    bandit, other = UcbBandit(4, 0.1, 3), UcbBandit(4, 0.1, 3)
    for value in (0.3, 0.1, 0.7, 0.2, 0.5):
        bandit.pull()
        bandit.reward(value)
    other.load_state(bandit.state())
    assert torch.equal(bandit.bounds(), other.bounds()) and bandit.pull() == other.pull()
