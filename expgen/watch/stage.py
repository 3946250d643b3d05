"""A stage: one game that can be watched, and the camera in front of it."""

from typing import Any, NamedTuple

from expgen.envs.gymnasium_env import GymnasiumEnv
from expgen.envs.levels import LevelSet
from expgen.envs.make import build_env
from expgen.envs.minimaze import Minimaze
from expgen.envs.own_env import OWN_ENVS
from expgen.envs.procgen import ProcgenConfig
from expgen.envs.vec_env import VecEnv
from expgen.errors import InputError
from expgen.exploration.oracle import make_wall_follower
from expgen.exploration.wall_follower import WallFollower
from expgen.watch.cameras import Camera, MinimazeCamera, ProcgenCamera, watched_procgen

ON_REQUEST = {"render_mode": "rgb_array"}  # how a Gymnasium environment is asked for pictures


class Stage(NamedTuple):
    """Where an episode is played."""

    env: VecEnv  # of one game
    camera: Camera


def open_stage(name: str, levels: LevelSet, seed: int = 0, **options: Any) -> Stage:
    """The environment that `build_env` makes of the same arguments, with one game, made to be watched."""
    family, _, game = name.partition(":")
    if family == "procgen":
        config = ProcgenConfig(game, **options)
        watched = watched_procgen(config, levels, seed)
        return Stage(watched, ProcgenCamera(watched, config))
    if (family == "gymnasium" or name in OWN_ENVS) and (stage := _rendered(name, levels, seed, options)):
        return stage
    env = build_env(name, levels, 1, seed, **options)
    if isinstance(env, Minimaze):
        return Stage(env, MinimazeCamera(env))
    return Stage(env, Camera(env, is_rendered=name in OWN_ENVS and not isinstance(env, GymnasiumEnv)))


def open_follower_stage(name: str, levels: LevelSet, seed: int = 0, **options: Any) -> tuple[WallFollower, Stage]:
    """The wall follower and a stage that it can read; ProcGen's Maze is shown as it is, and read in flat colours."""
    follower, env = make_wall_follower(name, levels, 1, seed, human_view=True, **options)
    if isinstance(env, Minimaze):
        return follower, Stage(env, MinimazeCamera(env))
    return follower, Stage(env, ProcgenCamera(env.twin, ProcgenConfig("maze", **options)))


def _rendered(name: str, levels: LevelSet, seed: int, options: dict[str, Any]) -> Stage | None:
    """A stage with the environment's own pictures; None where it has none or lacks what draws them."""
    from gymnasium.error import Error

    env = None
    try:
        env = build_env(name, levels, 1, seed, **{**options, **ON_REQUEST})
        camera = Camera(env, is_rendered=True)
        if camera.picture().ndim == 3:
            return Stage(env, camera)
    except (InputError, Error, ImportError):
        pass
    if env is not None:
        env.close()
    return None
