"""The intrinsic reward against a double loop, by hand, and against what the paper's numbers say of it."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy import ndarray
from torch import Tensor

from expgen.envs.library import is_installed
from expgen.envs.make import make_env
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.experiments.run import make_config
from expgen.reward import knn
from expgen.reward.knn import LOG_FLOOR, KnnConfig, KnnReward
from expgen.rollout.rollout import Rollout

CPU = torch.device("cpu")
Film = tuple[ndarray, ndarray]  # frames and firsts of one long walk, [time, N, …]; rollouts overlap by one frame


def film(num_frames: int, num_envs: int = 3, shape: tuple[int, ...] = (7, 8, 3), chance: float = 0.08) -> Film:
    """Frames that repeat now and then, some nearly, with episodes of random lengths."""
    rng = np.random.default_rng(0)
    few = rng.integers(0, 256, (6, *shape), dtype=np.uint8)
    frames = few[rng.integers(0, 6, (num_frames, num_envs))]
    frames.reshape(num_frames, num_envs, -1)[..., 0] = rng.integers(0, 3, (num_frames, num_envs))
    first = rng.random((num_frames, num_envs)) < chance
    first[0] = True
    return frames, first


def rollouts(walk: Film, num_steps: int, device: torch.device = CPU) -> list[Rollout]:
    frames, first = walk
    made = []
    for begin in range(0, len(frames) - num_steps, num_steps):
        spec = EnvSpec("film", frames.shape[2:], str(frames.dtype), 3)
        rollout = Rollout(spec, num_steps, frames.shape[1], 0, device)
        rollout.full.copy_(torch.from_numpy(frames[begin : begin + num_steps + 1]))
        rollout.host_first.copy_(torch.from_numpy(first[begin : begin + num_steps + 1]))
        rollout.finish()
        made.append(rollout)
    return made


def reward_of(walk: Film, num_steps: int, config: KnnConfig, device: torch.device = CPU) -> Tensor:
    source = KnnReward(config, walk[0].shape[1])
    return torch.cat([source(rollout).cpu() for rollout in rollouts(walk, num_steps, device)])


def oracle(walk: Film, config: KnnConfig) -> ndarray:
    """Two loops over steps, one over earlier frames; averages as the paper writes them."""
    frames, first = walk
    p, (height, width) = config.pool, (n // config.pool for n in frames.shape[2:4])
    cut = frames[:, :, : height * p, : width * p].astype(np.float64) / 255
    small = cut.reshape(*frames.shape[:2], height, p, width, p, -1).mean((3, 5))  # [time, N, h, w, C]
    reward = np.zeros((len(frames) - 1, frames.shape[1]))
    for env in range(frames.shape[1]):
        start = 0
        for t in range(len(frames) - 1):
            if first[t, env]:
                start = t
            if first[t + 1, env]:
                continue
            distances = []
            for i in range(max(start, t + 1 - config.memory_length), t + 1):
                difference = np.abs(small[t + 1, env] - small[i, env])
                if config.distance == "l0":
                    distances.append(float((difference > 1e-5).any(-1).sum()))
                else:
                    distances.append(float(np.sqrt((difference**2).sum())))
            kth = sorted(distances)[min(config.neighbor_rank, len(distances)) - 1]
            logs = {"raw": kth, "log": np.log(max(kth, 1e-5)), "log1p": np.log(1 + kth)}
            reward[t, env] = logs[config.reward_transform]
    return reward


@pytest.mark.parametrize("distance", ["l2", "l0"])
@pytest.mark.parametrize("neighbor_rank", [1, 2, 3, 5])
@pytest.mark.parametrize(("pool", "memory_length", "num_steps"), [(3, 500, 25), (1, 7, 10), (2, 1, 25), (2, 40, 6)])
def test_any_rollouts_give_the_double_loop(
    distance: Any, neighbor_rank: int, pool: int, memory_length: int, num_steps: int
):
    """Episodes span three rollouts and more, and are longer than the memory."""
    walk = film(151)
    config = KnnConfig(neighbor_rank, distance, "raw", memory_length, pool)
    np.testing.assert_allclose(reward_of(walk, num_steps, config)[:150], oracle(walk, config)[:150], atol=1e-6)


@pytest.mark.parametrize("transform", ["log", "log1p"])
@pytest.mark.parametrize("distance", ["l2", "l0"])
def test_transforms_give_the_double_loop(transform: Any, distance: Any):
    walk, config = film(61), KnnConfig(2, distance, transform)
    np.testing.assert_allclose(reward_of(walk, 20, config), oracle(walk, config), atol=1e-6)


def test_blocks_of_queries_and_of_environments_change_nothing(monkeypatch: pytest.MonkeyPatch):
    walk, config = film(151, num_envs=5, chance=0.02), KnnConfig(memory_length=20)
    whole = reward_of(walk, 50, config)
    monkeypatch.setattr(knn, "_QUERIES", 7)
    monkeypatch.setattr(knn, "_CHUNK_BYTES", 2 * 8 * 71 * 12)  # two environments at most
    assert torch.equal(reward_of(walk, 50, config), whole)


def by_hand(values: list[int], first: list[int], **settings: Any) -> list[float]:
    """One environment whose picture is one pixel, grey levels in steps of 1 / 255."""
    frames = np.repeat(np.array(values, dtype=np.uint8)[:, None, None, None, None], 3, axis=-1)
    walk = frames, np.array(first, dtype=bool)[:, None]
    config = KnnConfig(**{"pool": 1, **settings})
    reward = reward_of(walk, len(values) - 1, config)[:, 0]
    return [round(float(r) * 255 / 3**0.5, 4) if config.distance == "l2" else float(r) for r in reward]


def test_a_walk_by_hand():
    """Grey levels 10, 13, 11, 11 | 40, 50, 50: distances to earlier frames of the episode."""
    values, first = [10, 13, 11, 11, 40, 50, 50], [1, 0, 0, 0, 1, 0, 0]
    # 13: {3}; 11: {1, 2}; 11: {1, 2, 0}; the end; 50: {10}; 50: {10, 0}
    assert by_hand(values, first, neighbor_rank=1) == [3, 1, 0, 0, 10, 0]
    assert by_hand(values, first, neighbor_rank=2) == [3, 2, 1, 0, 10, 10]
    assert by_hand(values, first, neighbor_rank=3) == [3, 2, 2, 0, 10, 10]
    assert by_hand(values, first, neighbor_rank=2, memory_length=2) == [3, 2, 2, 0, 10, 10]
    assert by_hand(values, first, neighbor_rank=2, memory_length=1) == [3, 2, 0, 0, 10, 0]
    assert by_hand(values, first, neighbor_rank=1, distance="l0") == [1, 1, 0, 0, 1, 0]  # a cell, not its channels


def test_choice_log_of_a_zero_distance_is_that_of_the_floor_or_zero():
    frames = np.zeros((3, 1, 1, 1, 3), dtype=np.uint8)
    walk = frames, np.array([[True], [False], [True]])
    assert reward_of(walk, 2, KnnConfig(pool=1, reward_transform="log")).tolist() == [
        [pytest.approx(np.log(LOG_FLOOR))],
        [0],  # the step that ended the episode
    ]
    assert reward_of(walk, 2, KnnConfig(pool=1, reward_transform="log1p")).tolist() == [[0], [0]]


def test_choice_the_first_frame_of_an_episode_is_in_the_memory():
    assert by_hand([10, 20, 10], [1, 0, 0], neighbor_rank=1) == [10, 0]


def test_choice_the_frame_at_a_rollout_s_edge_is_in_the_memory():
    """The original code forgot it and put a black picture in its place."""
    frames = np.full((9, 1, 1, 1, 3), 200, dtype=np.uint8)
    first = np.zeros((9, 1), dtype=bool)
    first[[0, 4]] = True  # an episode opens exactly at the edge
    assert not reward_of((frames, first), 4, KnnConfig(pool=1)).any()
    first[4] = False  # and one goes on across it, shown nothing new but the frame at the edge itself
    frames[4] = frames[6] = 100
    reward = reward_of((frames, first), 4, KnnConfig(neighbor_rank=1, pool=1))
    assert (reward[:, 0] > 0).tolist() == [False, False, False, True, False, False, False, False]


def test_a_revisit_is_worth_nothing_at_all_however_large_the_picture():
    rng = np.random.default_rng(0)
    few = rng.integers(0, 256, (4, 1, 64, 64, 3), dtype=np.uint8)
    frames = few[[0, 1, 2, 3, 2, 1, 0, 3, 1]]
    first = np.zeros((9, 1), dtype=bool)
    first[0] = True
    for distance in ("l2", "l0"):
        reward = reward_of((frames, first), 8, KnnConfig(neighbor_rank=1, distance=distance))  # type: ignore[arg-type]
        assert (reward[:3] > 0).all() and reward[3:].eq(0).all()


def test_other_environments_and_episodes_do_not_matter():
    frames, first = film(91, num_envs=3)
    reward = reward_of((frames, first), 30, KnnConfig())
    alone = reward_of((frames[:, 1:2], first[:, 1:2]), 30, KnnConfig())
    assert torch.equal(reward[:, 1:2], alone)
    start, end = np.flatnonzero(first[:, 1])[1:3]
    assert end - start > 2
    changed = frames.copy()
    changed[:start] = 255 - changed[:start]
    changed[end:] = 255 - changed[end:]
    again = reward_of((changed, first), 30, KnnConfig())
    assert torch.equal(reward[start : end - 1, 1], again[start : end - 1, 1])


def test_where_rollouts_are_cut_does_not_matter():
    walk, config = film(61, chance=0.03), KnnConfig(memory_length=11)
    whole = reward_of(walk, 60, config)
    for num_steps in (30, 12, 4, 1):
        assert torch.equal(reward_of(walk, num_steps, config), whole)


def test_float_vectors_are_compared_as_they_are():
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(41, 2, 4)).astype(np.float32)[rng.integers(0, 41, 41)]
    first = rng.random((41, 2)) < 0.05
    first[0] = True
    as_picture = frames[:, :, :, None, None] * 255  # the oracle divides
    for rank, distance in ((1, "l2"), (2, "l2"), (2, "l0")):
        config = KnnConfig(rank, distance, pool=1)  # type: ignore[arg-type]
        reward = reward_of((frames, first), 20, config)
        np.testing.assert_allclose(reward, oracle((as_picture, first), config), atol=1e-6)
        assert rank > 1 or (reward == 0).any()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_saved_in_mid_episode_and_loaded_goes_on_alike(number: int):
    made, config = rollouts(film(81, chance=0.01), 20), KnnConfig(memory_length=30)
    source, other = KnnReward(config, 3), KnnReward(config, 3)
    for rollout in made[:number]:
        source(rollout)
    other.load_state({name: array.copy() for name, array in source.state().items()})
    for rollout in made[number:]:
        assert torch.equal(source(rollout), other(rollout))


def test_only_frames_of_episodes_under_way_are_saved():
    source = KnnReward(KnnConfig(memory_length=30), 3)
    first = np.zeros((41, 3), dtype=bool)
    first[0] = first[33] = True
    for rollout in rollouts((film(41)[0], first), 20):
        source(rollout)
    assert source.state()["shape"].tolist() == [7, 3, 4, 3] and source.state()["age"].tolist() == [7, 7, 7]
    assert source.frames is not None and len(source.frames) == 29


def test_a_game_that_starts_anew_after_loading_forgets():
    """Games that cannot be saved open a new episode when a run resumes."""
    walk, config = film(41, chance=0.0), KnnConfig(neighbor_rank=1)
    one, two = rollouts(walk, 20)
    two.host_first[0] = True
    two.finish()
    source, fresh = KnnReward(config, 3), KnnReward(config, 3)
    source(one)
    assert torch.equal(source(two), fresh(two))


def test_bad_settings_are_refused():
    for settings, message in (
        ({"neighbor_rank": 0}, "--neighbor-rank is 0; accepted: 1 or more"),
        ({"memory_length": 0}, "--memory-length is 0"),
        ({"pool": 12}, "--pool is 12; accepted: 1 to 11"),
        ({"distance": "l1"}, "--distance is 'l1'; accepted: l2, l0"),
        ({"reward_transform": "exp"}, "--reward-transform is 'exp'"),
    ):
        with pytest.raises(InputError, match=message):
            make_config(algo="maxent", **settings)
    walk = film(11, shape=(6, 6, 5))
    with pytest.raises(InputError, match="--distance is l0 for 5 channels"):
        reward_of(walk, 10, KnnConfig(distance="l0"))


def test_discounts_and_cells_by_game():
    assert make_config("procgen:heist", "maxent").algorithm.gamma == 0.5
    assert make_config("procgen:jumper", "maxent").algorithm.gamma == 0.99
    assert make_config("procgen:jumper", "maxent", gamma=0.3).algorithm.gamma == 0.3
    config = make_config("procgen:maze", "maxent")
    assert (config.algorithm.gamma, config.steps, config.network.memory) == (0.9, 100_000_000, "gru")
    assert config.reward == KnnConfig(2, "l2", "raw", 500, 3)
    config = make_config("minimaze", "maxent")
    assert config.reward == dataclasses.replace(KnnConfig(), pool=1, reward_scale=0.15)
    assert config.algorithm.gamma == 0.9
    assert make_config("gymnasium:CartPole-v1", "maxent", "laptop").algorithm.gamma == 0.9  # not the preset's


@pytest.mark.gpu
@pytest.mark.parametrize("distance", ["l2", "l0"])
def test_the_gpu_agrees_and_never_waits_for_the_host(distance: Any):
    walk, config = film(151, num_envs=5, chance=0.02), KnnConfig(distance=distance, memory_length=60)
    device = torch.device("cuda")
    torch.testing.assert_close(reward_of(walk, 50, config, device), reward_of(walk, 50, config), atol=1e-6, rtol=1e-6)
    source, (one, two, three) = KnnReward(config, 5), rollouts(walk, 50, device)
    source(one)
    source(two)
    torch.cuda.set_sync_debug_mode("error")
    try:
        source(three)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.procgen
@pytest.mark.skipif(not is_installed(), reason="no ProcGen library")
def test_a_random_agent_in_maze_returns_what_the_reference_measured():
    """4.1 for k = 1 and 8.0 for k = 2, mean of an episode on each of the levels 0 to 199; here on every fourth."""
    num_envs, num_steps = 50, 125
    env: Any = make_env("procgen:maze", 200, num_envs, 0, 2, full_view=True)
    for index in range(num_envs):
        env.play(index, 4 * index)
    rng = np.random.default_rng(0)
    sources = [KnnReward(KnnConfig(rank), num_envs) for rank in (1, 2)]
    total, goes_on = np.zeros((2, num_envs)), np.ones(num_envs, dtype=bool)
    rollout = Rollout(env.spec, num_steps, num_envs, 0, CPU)
    for _ in range(4):  # the time limit is 500 steps
        rollout.record(0, env.observe())
        for t in range(num_steps):
            env.act(rng.integers(15, size=num_envs, dtype=np.int32))
            rollout.record(t + 1, env.observe())
        rollout.finish()
        ended = np.cumsum(rollout.host_first.numpy()[1:], axis=0) > 0  # [T, N]
        for sums, source in zip(total, sources):
            sums += (source(rollout).numpy() * ~ended * goes_on).sum(0)
        goes_on &= ~ended[-1]
    env.close()
    assert not goes_on.any()
    print("intrinsic return", total.mean(1), "standard error", total.std(1) / num_envs**0.5)
    assert total[0].mean() == pytest.approx(4.1, abs=0.8)
    assert total[1].mean() == pytest.approx(8.0, abs=1.5)


def test_the_explorer_trains_resumes_bit_equal_and_reports_its_intrinsic_return(
    small: Any, equal: Callable[..., bool], tmp_path: Path, one_core: None
):
    """Stopped after every rollout or not, in the middle of episodes of up to 192 steps."""
    game = {"algo": "maxent", "options": {"time_limit": 40}}
    small.train(tmp_path / "whole", 5, **game)
    for updates in (1, 2, 5):
        small.train(tmp_path / "parts", updates, **game, resume=True)
    assert equal(small.state(tmp_path / "whole"), small.state(tmp_path / "parts"))
    assert small.state(tmp_path / "whole")["reward.age"].any()
    header, *rows = (tmp_path / "whole" / "metrics.csv").read_text().splitlines()
    last = dict(zip(header.split(","), rows[-1].split(",")))
    assert float(last["intrinsic_return"]) > 0 and "episode_return" in last


def test_the_scale_is_for_learning_and_not_for_reporting():
    plain, scaled = KnnReward(KnnConfig(), 3), KnnReward(KnnConfig(reward_scale=0.25), 3)
    for rollout in rollouts(film(41), 20):
        assert torch.equal(scaled(rollout), 0.25 * plain(rollout))
        assert torch.equal(scaled.intrinsic, plain.intrinsic)
