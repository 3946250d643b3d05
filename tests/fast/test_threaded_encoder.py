"""ThreadedEncoder against its encoder, and its weights against the number of threads."""

import copy
import time
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from expgen.fast.threaded_encoder import MAX_CHUNK, MIN_CHUNK, ThreadedEncoder, chunks_of, in_threads
from expgen.networks.impala import ImpalaEncoder
from expgen.runs.make_config import make_config
from expgen.runs.plan import build_learner, plans_of
from expgen.training.resources import Resources


@pytest.fixture(autouse=True)
def restored_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def make_encoder() -> ImpalaEncoder:
    encoder = ImpalaEncoder((16, 16, 3), 8).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    encoder.initialise(torch.Generator().manual_seed(0))
    return encoder


def images(count: int) -> Tensor:
    return torch.randint(256, (count, 16, 16, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


def features_and_gradients(encoder: ImpalaEncoder, features: Tensor) -> list[Tensor]:
    return [features.detach(), *torch.autograd.grad(features.square().sum(), list(encoder.parameters()))]


@pytest.mark.parametrize(
    ("count", "size", "chunks"), [(1, 1, 1), (32, 16, 2), (100, 25, 4), (256, 64, 4), (2048, 64, 32), (2049, 1, 33)]
)
def test_chunks_cover_the_batch_and_depend_on_its_size_alone(count: int, size: int, chunks: int):
    split = chunks_of(torch.arange(count))
    assert torch.equal(torch.cat(split), torch.arange(count))
    assert (len(split), len(split[-1])) == (chunks, size)
    assert all(MIN_CHUNK <= len(chunk) <= MAX_CHUNK for chunk in split[:-1])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("count", [1, MIN_CHUNK + 1, 4 * MAX_CHUNK + 3])
def test_features_and_gradients_are_those_of_the_encoder(count: int, threads: int):
    torch.set_num_threads(threads)
    encoder, obs = make_encoder(), images(count)
    found = features_and_gradients(encoder, ThreadedEncoder(encoder)(obs))
    for mine, plain in zip(found, features_and_gradients(encoder, encoder(obs)), strict=True):
        torch.testing.assert_close(mine, plain, rtol=1e-3, atol=1e-3)
    with torch.no_grad():
        assert torch.equal(ThreadedEncoder(encoder)(obs), found[0])


def test_number_of_threads_changes_no_bit():
    encoder, obs = make_encoder(), images(4 * MAX_CHUNK)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        results.append(features_and_gradients(encoder, ThreadedEncoder(encoder)(obs)))
        assert torch.get_num_threads() == threads  # the threads of the encoder do not change the caller's number
    for other in results[1:]:
        assert all(torch.equal(mine, first) for mine, first in zip(other, results[0], strict=True))


def test_threads_compute_alone_also_when_the_number_changes_before_their_first_operation():
    torch.set_num_threads(5)
    list(in_threads(time.sleep, [0.01] * 20))  # starts the threads, without an operation of torch
    torch.set_num_threads(5)
    assert set(in_threads(lambda _: torch.get_num_threads(), range(20))) == {1}


def test_only_weights_that_are_trained_get_gradients():
    encoder = make_encoder()
    encoder.stages.requires_grad_(False)
    ThreadedEncoder(encoder)(images(40)).sum().backward()
    assert encoder.linear.weight.grad is not None and encoder.stages[0].conv.weight.grad is None  # type: ignore[union-attr]
    encoder.requires_grad_(False)
    assert not ThreadedEncoder(encoder)(images(40)).requires_grad


def test_error_in_a_thread_reaches_the_caller():
    torch.set_num_threads(2)
    with pytest.raises(RuntimeError, match="channels"):
        ThreadedEncoder(make_encoder())(images(40)[..., :2])


@pytest.mark.parametrize("algo", ["ppo", "maxent", "idaac"])
def test_impala_learners_use_it_on_the_cpu(algo: str):
    config = make_config("minimaze", algo, preset="smoke", encoder="impala", eval_every=0)
    learner = build_learner(config, plans_of(config)[0], Resources(torch.device("cpu"), 1, 1, 1))
    networks = [network for network in (learner.algorithm.policy, learner.algorithm.value_network) if network]
    assert all(isinstance(network.encode, ThreadedEncoder) for network in networks)
    assert isinstance(copy.deepcopy(learner.algorithm.policy).encode, ThreadedEncoder)  # as scoring copies it
