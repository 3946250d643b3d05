"""Minibatches: each transition once per epoch, all fields from the same transition."""

import pytest
import torch

from expgen.envs.vec_env import EnvSpec
from expgen.rollout.minibatch import Minibatch, minibatch_rows, minibatches
from expgen.rollout.rollout import Rollout

T, N = 6, 8


def numbered_rollout(state_size: int = 2) -> tuple[Rollout, torch.Tensor]:
    """Transition (t, n) carries t · N + n in every field; the numbers of slot T must not appear."""
    rollout = Rollout(EnvSpec("toy", (3,), "float32", 4), T, N, state_size, torch.device("cpu"))
    number = torch.arange((T + 1) * N).view(T + 1, N)
    rollout.obs.copy_(number.unsqueeze(-1).expand(-1, -1, 3))
    rollout.first.copy_(number % 3 == 0)
    rollout.action.copy_(number)
    rollout.log_prob.copy_(number + 0.25)
    rollout.value.copy_(number + 0.5)
    rollout.value_target.copy_(number[:T] + 0.75)
    rollout.state[0] = torch.arange(N).unsqueeze(1)
    return rollout, number[:T] + 0.125  # the advantage to learn from


def epoch(order: str, count: int, seed: int = 0) -> list[Minibatch]:
    rollout, advantage = numbered_rollout()
    return list(minibatches(rollout, advantage, count, order, torch.Generator().manual_seed(seed)))  # type: ignore[arg-type]


@pytest.mark.parametrize("order", ["columns", "shuffled"])
@pytest.mark.parametrize("count", [1, 3, 4, 8])
def test_epoch_contains_each_transition_once(order: str, count: int):
    batches = epoch(order, count)
    seen = torch.cat([batch.action.flatten() for batch in batches])
    assert sorted(seen.tolist()) == list(range(T * N))


@pytest.mark.parametrize("order", ["columns", "shuffled"])
def test_minibatch_fields_belong_to_the_same_transition(order: str):
    for batch in epoch(order, 4):
        number = batch.action
        assert torch.equal(batch.obs, number.unsqueeze(-1).expand(-1, -1, 3).float())
        assert torch.equal(batch.first, number % 3 == 0)
        assert torch.equal(batch.log_prob, number + 0.25)
        assert torch.equal(batch.value, number + 0.5)
        assert torch.equal(batch.value_target, number + 0.75)
        assert torch.equal(batch.advantage, number + 0.125)


def test_columns_are_whole_environments_with_their_memory():
    for batch in epoch("columns", 4):
        env = batch.action[0]
        assert batch.action.shape == (T, 2)
        assert torch.equal(batch.action, env + N * torch.arange(T).unsqueeze(1))
        assert torch.equal(batch.state, env.unsqueeze(1).expand(-1, 2).float())


def test_shuffled_minibatch_mixes_transitions_and_has_zero_memory():
    batch = epoch("shuffled", 4)[0]
    assert batch.action.shape == (1, T * N // 4)
    number = batch.action[0]
    assert len((number // N).unique()) > 2 and len((number % N).unique()) > 2
    assert batch.state.shape == (T * N // 4, 2) and not batch.state.any()


@pytest.mark.parametrize("order", ["columns", "shuffled"])
def test_minibatch_order_depends_on_the_generator_only(order: str):
    def numbers(seed: int) -> list[int]:
        return torch.cat([batch.action.flatten() for batch in epoch(order, 4, seed)]).tolist()

    assert numbers(0) == numbers(0) != numbers(1)


def test_minibatches_of_successive_epochs_differ():
    rollout, advantage = numbered_rollout()
    generator = torch.Generator().manual_seed(0)
    one, two = (
        torch.cat([batch.action[0] for batch in minibatches(rollout, advantage, 4, "columns", generator)])
        for _ in range(2)
    )
    assert one.tolist() != two.tolist()


@pytest.mark.parametrize("order", ["columns", "shuffled"])
def test_uneven_split_has_the_requested_number_of_minibatches(order: str):
    """8 columns in 5 groups: 2, 2, 2, 1, 1 — `chunk` would have made 4 groups of 2."""
    batches = epoch(order, 5)
    sizes = [batch.action.shape[1] for batch in batches]
    assert len(sizes) == 5 and max(sizes) - min(sizes) <= 1


def test_minibatches_are_never_empty():
    assert [batch.action.shape[1] for batch in epoch("columns", 11)] == [1] * N


@pytest.mark.parametrize("order", ["columns", "shuffled"])
@pytest.mark.parametrize("count", [1, 3, 100])
def test_minibatch_rows_match_minibatches(order: str, count: int):
    rows = list(minibatch_rows(T, N, count, order, torch.Generator().manual_seed(0)))  # type: ignore[arg-type]
    batches = epoch(order, count)
    assert len(rows) == len(batches)
    for row, batch in zip(rows, batches):
        assert torch.equal(row, batch.action.flatten())


def test_minibatch_field_is_gathered_on_first_read_and_cached():
    rollout, advantage = numbered_rollout()
    batch = next(minibatches(rollout, advantage, 1, "columns", torch.Generator().manual_seed(0)))
    rollout.value.fill_(7)
    assert (batch.value == 7).all()
    rollout.value.fill_(8)
    assert (batch.value == 7).all() and batch.value is batch.value


def test_minibatch_index_gives_rows_of_the_rollout():
    rollout, advantage = numbered_rollout()
    for row in minibatch_rows(T, N, 3, "columns", torch.Generator().manual_seed(0)):
        batch = Minibatch(rollout, advantage, row, "shuffled")
        assert torch.equal(torch.arange(T * N)[batch.index], batch.action[0])
