"""IDAAC's frame pairs: ages, partners of the same level, and labels by hand."""

import torch

from expgen.algorithms.idaac_order import draw_pairs, partners, steps_in_episode


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_steps_in_episode_continue_across_rollouts():
    """Three rollouts that share their boundary frames, against a step-by-step counter."""
    first = torch.rand(31, 5, generator=generator()) < 0.15
    first[0] = True
    counted, age = [], torch.zeros(5, dtype=torch.int64)
    for row in first:
        age = torch.where(row, 0, age + 1)
        counted.append(age)
    elapsed = torch.zeros(1, dtype=torch.int64)  # the number of environments is not known before the first rollout
    for begin in (0, 10, 20):
        steps = steps_in_episode(first[begin : begin + 11], elapsed)
        assert torch.equal(steps, torch.stack(counted[begin : begin + 11]))
        elapsed = steps[-1]
    assert elapsed.max() > 10  # an episode longer than a rollout


def test_partners_are_uniform_over_frames_of_the_same_level():
    level = torch.tensor([7, 3, 7, 9, 3, 7], dtype=torch.int32)
    drawn = torch.stack([partners(level, 4, generator(seed)) for seed in range(3000)])
    assert torch.equal(level[drawn], level[:4].expand(3000, 4))
    for row, alike in enumerate(([0, 2, 5], [1, 4], [0, 2, 5], [3])):
        share = torch.bincount(drawn[:, row], minlength=6)[alike] / 3000
        torch.testing.assert_close(share, torch.full((len(alike),), 1 / len(alike)), atol=0.04, rtol=0)


def test_idaac_order_labels_by_hand():
    """Two games of one level, ages 0 1 2 and 4 0 1: earlier means lower age, equal ages are not earlier."""
    first = torch.tensor([[True, False], [False, True], [False, False]])
    level, age = torch.zeros(3, 2, dtype=torch.int32), torch.tensor([0, 4, 1, 0, 2, 1])
    seen = set()
    for seed in range(50):
        pairs = draw_pairs(level, first, torch.tensor([9, 4]), generator(seed))
        assert pairs.partner.shape == pairs.is_earlier.shape == (4,) and pairs.elapsed.tolist() == [2, 1]
        for row, (partner, is_earlier) in enumerate(zip(pairs.partner.tolist(), pairs.is_earlier.tolist())):
            assert is_earlier == float(age[partner] < age[row])
            seen.add((row, partner))
    assert seen == {(row, partner) for row in range(4) for partner in range(6)}  # frames of slot T are partners too
