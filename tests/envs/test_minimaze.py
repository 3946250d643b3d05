"""Minimaze against a slow implementation; VecEnv, LevelControl and Snapshots."""

import numpy as np
import pytest

from expgen.envs.levels import LevelSet, LevelStream
from expgen.envs.make import make_env
from expgen.envs.maze_generator import AGENT_COLOR, MazeGenerator
from expgen.envs.minimaze import ACTIONS, Minimaze, MinimazeConfig
from expgen.envs.vec_env import LevelControl, Observation, Snapshots
from expgen.errors import InputError

MOVES = {"none": (0, 0), "left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}


def make(levels: str = "all", num_envs: int = 8, seed: int = 0, **options: int) -> Minimaze:
    return Minimaze(LevelSet.parse(levels), num_envs, seed, MinimazeConfig(**options))


def actions(steps: int, num_envs: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(len(ACTIONS), size=(steps, num_envs), dtype=np.int32)


def copied(seen: Observation) -> Observation:
    return Observation(*(part.copy() for part in seen))


def same(one: Observation, other: Observation) -> bool:
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(one, other, strict=True))


class PlainMaze:
    """One maze, one step at a time."""

    def __init__(self, config: MinimazeConfig):
        self.config = config
        self.generator = MazeGenerator(config.min_cells, config.max_cells, config.num_themes, config.texture)

    def start(self, level: int) -> None:
        maze = self.generator(np.array([level]))
        side = self.generator.side
        self.walls = maze.walls[0].reshape(side, side)
        self.frame = maze.frame[0].reshape(side, side, 3)
        self.agent = divmod(int(maze.start[0]), side)
        self.goal = divmod(int(maze.goal[0]), side)
        self.elapsed = 0

    def act(self, action: int) -> tuple[float, bool, bool]:
        """Take a step; return reward, whether the episode ended, whether it was solved."""
        row, column = MOVES[ACTIONS[action]]
        target = (self.agent[0] + row, self.agent[1] + column)
        if not self.walls[target]:
            self.agent = target
        self.elapsed += 1
        if self.agent == self.goal:
            return 10.0, True, True
        return 0.0, self.elapsed == self.config.horizon, False

    def picture(self) -> np.ndarray:
        picture = self.frame.copy()
        picture[self.agent] = AGENT_COLOR
        return picture


@pytest.mark.parametrize("levels, options", [("20", {}), ("all", {"max_cells": 3, "time_limit": 9, "cache_levels": 1})])
def test_minimaze_matches_slow_implementation(levels: str, options: dict[str, int]) -> None:
    num_envs, steps = 6, 400
    env = make(levels, num_envs, seed=4, **options)
    stream = LevelStream(LevelSet.parse(levels), num_envs, seed=4)
    plain = [PlainMaze(env.config) for _ in range(num_envs)]
    level = stream.next(np.arange(num_envs))
    for index, maze in enumerate(plain):
        maze.start(int(level[index]))
    ended_count = solved_count = 0
    for action in actions(steps, num_envs):
        env.act(action)
        seen = env.observe()
        assert seen.full is seen.obs
        for index, maze in enumerate(plain):
            reward, ended, solved = maze.act(int(action[index]))
            if ended:
                level[index] = stream.next(np.array([index]))[0]
                maze.start(int(level[index]))
            assert (seen.reward[index], seen.first[index], seen.solved[index]) == (reward, ended, solved)
            assert seen.level[index] == level[index]
            assert np.array_equal(seen.obs[index], maze.picture())
            assert np.array_equal(env.walls[index], maze.walls)
            assert tuple(env.agent[index]) == maze.agent and tuple(env.goal[index]) == maze.goal
            ended_count, solved_count = ended_count + ended, solved_count + solved
    assert ended_count > 10 and 0 < solved_count < ended_count


def test_minimaze_shapes_and_first_observation() -> None:
    env = make_env("minimaze", levels=50, num_envs=4, max_cells=6)
    assert isinstance(env, Minimaze) and isinstance(env, LevelControl) and isinstance(env, Snapshots)
    seen = env.observe()
    assert env.spec.obs_shape == (13, 13, 3) and env.spec.num_actions == 5
    assert seen.obs.shape == (4, 13, 13, 3) and seen.obs.dtype == np.uint8
    assert seen.reward.dtype == np.float32 and seen.level.dtype == np.int32
    assert seen.first.all() and not seen.solved.any() and not seen.reward.any()
    assert env.observe() is seen
    env.close()
    env.close()


def test_minimaze_frames_do_not_depend_on_number_of_environments() -> None:
    few, many, other = make(num_envs=3), make(num_envs=300), make(num_envs=3, seed=1)
    assert not np.array_equal(few.observe().level, other.observe().level)
    for action in actions(250, 300):
        few.act(action[:3])
        many.act(action)
        assert same(few.observe(), Observation(*(part[:3] for part in many.observe())))


def test_minimaze_frames_do_not_depend_on_cache_size() -> None:
    small, large = make("500", cache_levels=1, time_limit=3), make("500", time_limit=3)
    for action in actions(300, 8):
        small.act(action)
        large.act(action)
        assert same(small.observe(), large.observe())


def test_minimaze_plays_all_and_only_its_levels() -> None:
    for levels in ("30", "1000:30", "5,6,99"):
        env = make(levels, num_envs=32, time_limit=2)
        played = set(env.observe().level.tolist())
        for action in actions(60, 32):
            env.act(action)
            played |= set(env.observe().level.tolist())
        assert played == set(LevelSet.parse(levels).seeds or ())


def test_minimaze_time_limit_is_exact() -> None:
    env = make(num_envs=5, time_limit=7)
    still = np.zeros(5, dtype=np.int32)
    for step in range(1, 29):
        env.act(still)
        seen = env.observe()
        assert (seen.first == (step % 7 == 0)).all() and not seen.reward.any() and not seen.solved.any()
        assert (seen.timed_out == seen.first).all()


def test_minimaze_goal_on_the_last_step_is_solved() -> None:
    env = make(num_envs=1, time_limit=1)
    toward = {move: action for action, move in enumerate(MOVES.values())}
    level = 0
    while (way := tuple((env.goal - env.agent)[0].tolist())) not in toward:
        level += 1
        env.play(0, level)
    env.act(np.array([toward[way]], dtype=np.int32))
    seen = env.observe()
    assert seen.solved[0] and seen.first[0] and seen.reward[0] == 10


def test_minimaze_default_time_limit_is_two_tours() -> None:
    assert MinimazeConfig(max_cells=8).longest_tour == 252  # as in ProcGen, whose limit is 500
    assert MinimazeConfig().horizon == 192
    assert MinimazeConfig(time_limit=50).horizon == 50


def test_minimaze_play_starts_level_once_and_then_returns_to_the_set() -> None:
    env, stream = make("20", time_limit=4), LevelStream(LevelSet.parse("20"), 8, seed=0)
    still = np.zeros(8, dtype=np.int32)
    for _ in range(5):
        env.act(still)  # all games are in the first step of their second level
    before = copied(env.observe())
    assert before.level.tolist() == stream.peek(2)[8:].tolist() and not before.first.any()
    env.play(2, 123456)
    seen = env.observe()
    assert seen.level[2] == 123456 and seen.first[2]
    assert np.array_equal(seen.reward, before.reward) and np.array_equal(seen.solved, before.solved)
    others = np.arange(8) != 2
    assert same(Observation(*(part[others] for part in seen)), Observation(*(part[others] for part in before)))
    for step in range(1, 5):
        env.act(still)
        assert env.observe().first[2] == (step == 4)
    assert env.observe().level.tolist() == stream.peek(3)[16:].tolist()


def test_minimaze_play_keeps_result_of_previous_episode() -> None:
    env = make(num_envs=1, min_cells=2, max_cells=2)
    for action in actions(100, 1):
        env.act(action)
        if env.observe().solved[0]:
            break
    env.play(0, 5)
    assert env.observe().solved[0] and env.observe().reward[0] == 10


def test_minimaze_play_shows_same_maze_in_every_environment() -> None:
    env = make(num_envs=3)
    for index in range(3):
        env.play(index, 77)
    picture = env.observe().obs
    assert (picture == picture[0]).all() and (env.walls == env.walls[0]).all()


def test_restored_minimaze_continues_exactly() -> None:
    for levels in ("50", "all"):
        env, other = make(levels, num_envs=16, time_limit=30), make(levels, num_envs=16, time_limit=30)
        for action in actions(101, 16):
            env.act(action)
        env.play(3, 999)
        state, at_save = env.save(), copied(env.observe())
        future = []
        for action in actions(200, 16, seed=1):
            env.act(action)
            future.append(copied(env.observe()))
        for again in (env, other):
            again.restore(state)
            assert same(again.observe(), at_save)
            for action, seen in zip(actions(200, 16, seed=1), future, strict=True):
                again.act(action)
                assert same(again.observe(), seen)


def test_minimaze_rejects_invalid_options_actions_and_states() -> None:
    with pytest.raises(InputError, match="min_cells is 6; accepted: 2 to 5"):
        MinimazeConfig(min_cells=6)
    with pytest.raises(InputError, match="num_themes is 0"):
        make_env("minimaze", num_themes=0)
    env = make(num_envs=2)
    for action in ([0, 5], [-1, 0], [0], [[0, 0]]):
        with pytest.raises(ValueError, match="action is"):
            env.act(np.array(action))
    with pytest.raises(ValueError, match="level 0"):
        env.play(0, -1)
    with pytest.raises(InputError, match="accepted: \\(2,\\)"):
        env.restore(make(num_envs=3).save())
    with pytest.raises(ValueError, match="read-only"):
        env.walls[0, 0, 0] = False
