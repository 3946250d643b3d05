"""Changed views of ProcGen: the uncentred twin for r_I, and the Hidden Maze mask (Appendix A)."""

from collections.abc import Mapping

import numpy as np
from numpy import ndarray

from expgen.envs.procgen_env import ControlledProcgenEnv, ProcgenEnv
from expgen.envs.vec_env import Observation, env_repr

WALL = (191, 127, 63)  # monochrome colour of Maze's walls; the mask paints everything but the agent with it
AGENT_GREEN = 255  # no other monochrome colour of Maze has this much green


class UncentredTwin:
    """Two environments stepped in lock-step: `obs` is the centred view of one, `full` the uncentred view of the other.

    r_I measures how far the agent has moved. In a view that follows the agent the whole picture moves instead, so r_I
    is measured on a second environment that differs only in the view (the paper's code does the same). Levels, rewards
    and episode ends come from the main environment; the twin's are equal.
    """

    __repr__ = env_repr

    def __init__(self, main: ControlledProcgenEnv, twin: ControlledProcgenEnv) -> None:
        self.spec, self.levels, self.num_envs = main.spec, main.levels, main.num_envs
        self.twin, self._envs = twin, {"main": main, "twin": twin}
        self._observation = main.observe()._replace(full=twin.observe().obs)

    def act(self, action: ndarray) -> None:
        for env in self._envs.values():
            env.act(action)

    def observe(self) -> Observation:
        for env in self._envs.values():
            env.observe()
        return self._observation

    def play(self, env: int, level: int) -> None:
        for games in self._envs.values():
            games.play(env, level)

    def save(self) -> dict[str, ndarray]:
        return {f"{part}.{name}": array for part, env in self._envs.items() for name, array in env.save().items()}

    def restore(self, state: Mapping[str, ndarray]) -> None:
        for part, env in self._envs.items():
            prefix = f"{part}."
            env.restore({name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)})

    def close(self) -> None:
        for env in self._envs.values():
            env.close()


class HiddenMaze:
    """Maze with every pixel but the agent's painted in the wall colour.

    A pixel is kept if its green channel is exactly 255; `full` is the same masked picture. Hidden Maze uses generated
    assets, with which ProcGen can neither save games nor choose levels, so this has no LevelControl and no Snapshots.
    """

    __repr__ = env_repr

    def __init__(self, env: ProcgenEnv) -> None:
        self.spec, self.levels, self.num_envs = env.spec, env.levels, env.num_envs
        self._env = env
        unmasked = env.observe()
        obs = np.empty_like(unmasked.obs)  # [N, 64, 64, 3]
        obs[:] = WALL
        self._observation = unmasked._replace(obs=obs, full=obs)
        self._unmasked, self._masked = unmasked.obs.reshape(-1, 3), obs.reshape(-1, 3)  # [N * 64 * 64, 3], views
        self._visible = np.empty(0, np.intp)  # indices of the pixels that are not masked
        self._is_stale = True

    def act(self, action: ndarray) -> None:
        self._env.act(action)
        self._is_stale = True

    def observe(self) -> Observation:
        self._env.observe()
        if self._is_stale:
            self._masked[self._visible] = WALL  # few pixels change: cheaper than painting all of them again
            self._visible = np.flatnonzero(self._unmasked[:, 1] == AGENT_GREEN)
            self._masked[self._visible] = self._unmasked[self._visible]
            self._is_stale = False
        return self._observation

    def picture(self, env: int) -> ndarray:
        return self._env.picture(env)

    def close(self) -> None:
        self._env.close()
