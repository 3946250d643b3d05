"""What a ProcGen environment shows, changed: the uncentred twin for r_I, and the Hidden Maze mask (Appendix A)."""

from collections.abc import Mapping

import numpy as np
from numpy import ndarray

from expgen.envs.procgen_env import ControlledProcgenEnv, ProcgenEnv
from expgen.envs.vec_env import Observation, env_repr

WALL = (191, 127, 63)  # the monochrome colour of a maze's wall, which the mask spreads over all but the agent
AGENT_GREEN = 255  # no other monochrome colour of the maze has so much green


class UncentredTwin:
    """A game played twice in lock-step: the policy sees the centred view, `full` is the uncentred one.

    r_I measures how far the agent has moved. Where the view follows the agent the whole picture moves instead, so it
    has to be measured on a second environment, equal in all but the view (the paper's code does the same). Levels,
    rewards and ends are those of the main environment; the twin's are equal.
    """

    __repr__ = env_repr

    def __init__(self, main: ControlledProcgenEnv, twin: ControlledProcgenEnv) -> None:
        self.spec, self.levels, self.num_envs = main.spec, main.levels, main.num_envs
        self.twin, self._both = twin, {"main": main, "twin": twin}
        self._seen = main.observe()._replace(full=twin.observe().obs)

    def act(self, action: ndarray) -> None:
        for env in self._both.values():
            env.act(action)

    def observe(self) -> Observation:
        for env in self._both.values():
            env.observe()
        return self._seen

    def play(self, env: int, level: int) -> None:
        for each in self._both.values():
            each.play(env, level)

    def save(self) -> dict[str, ndarray]:
        return {f"{part}.{name}": array for part, env in self._both.items() for name, array in env.save().items()}

    def restore(self, state: Mapping[str, ndarray]) -> None:
        for part, env in self._both.items():
            start = f"{part}."
            env.restore({name.removeprefix(start): array for name, array in state.items() if name.startswith(start)})

    def close(self) -> None:
        for env in self._both.values():
            env.close()


class HiddenMaze:
    """Maze with everything but the agent painted over in the colour of its walls.

    A pixel survives if its green is exactly 255; `full` is the same masked picture. The maze's assets are generated, so
    its games can neither be saved nor sent to a level: this is a VecEnv and no more.
    """

    __repr__ = env_repr

    def __init__(self, env: ProcgenEnv) -> None:
        self.spec, self.levels, self.num_envs = env.spec, env.levels, env.num_envs
        self._env = env
        bare = env.observe()
        obs = np.empty_like(bare.obs)  # [N, 64, 64, 3]
        obs[:] = WALL
        self._seen = bare._replace(obs=obs, full=obs)
        self._bare, self._masked = bare.obs.reshape(-1, 3), obs.reshape(-1, 3)  # [N * 64 * 64, 3], views
        self._shown = np.empty(0, np.intp)  # pixels now shown
        self._is_stale = True

    def act(self, action: ndarray) -> None:
        self._env.act(action)
        self._is_stale = True

    def observe(self) -> Observation:
        self._env.observe()
        if self._is_stale:
            self._masked[self._shown] = WALL  # few pixels change: cheaper than painting all of them again
            self._shown = np.flatnonzero(self._bare[:, 1] == AGENT_GREEN)
            self._masked[self._shown] = self._bare[self._shown]
            self._is_stale = False
        return self._seen

    def picture(self, env: int) -> ndarray:
        """What the agent cannot see; see ProcgenEnv."""
        return self._env.picture(env)

    def close(self) -> None:
        self._env.close()
