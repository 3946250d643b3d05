"""ProcGen's 16 games, their modes and options, and the function that makes an environment of them."""

from dataclasses import asdict, dataclass, replace
from typing import Literal

from expgen.envs.levels import LevelSet
from expgen.envs.procgen_env import ControlledProcgenEnv, ProcgenEnv
from expgen.envs.vec_env import VecEnv
from expgen.envs.views import HiddenMaze, UncentredTwin
from expgen.errors import InputError, check_choice

GAMES = (
    "bigfish", "bossfight", "caveflyer", "chaser", "climber", "coinrun", "dodgeball", "fruitbot",
    "heist", "jumper", "leaper", "maze", "miner", "ninja", "plunder", "starpilot",
)  # fmt: skip
# Games whose view follows the agent, in all their modes; the others show the whole level with any `center_agent`.
CENTRED = frozenset(("caveflyer", "climber", "coinrun", "fruitbot", "jumper", "ninja"))
EXPLORATION_LEVELS = {  # exploration mode plays only this level, in hard mode
    "caveflyer": 1259048185,
    "climber": 1561126160,
    "coinrun": 1949448038,
    "heist": 876640971,
    "jumper": 1434825276,
    "leaper": 1318677581,
    "maze": 158988835,
    "ninja": 1123500215,
}
MODES = {  # the library's number for each mode, and the games that have it
    "easy": (0, GAMES),
    "hard": (1, GAMES),
    "extreme": (2, ("chaser", "dodgeball", "leaper", "starpilot")),
    "memory": (10, ("caveflyer", "dodgeball", "heist", "jumper", "maze", "miner")),
    "exploration": (1, tuple(EXPLORATION_LEVELS)),
}
HIDDEN_OPTIONS = {  # Appendix A: flat colours on black, so that the mask can find the agent by its colour
    "use_generated_assets": True,
    "use_monochrome_assets": True,
    "restrict_themes": True,
    "use_backgrounds": False,
}


@dataclass(frozen=True)
class ProcgenConfig:
    """One game and its options; the defaults are those of the paper's experiments."""

    game: str  # one of GAMES
    distribution_mode: Literal["easy", "hard", "extreme", "memory", "exploration"] = "easy"  # see MODES
    center_agent: bool = True  # in CENTRED games the view follows the agent
    use_backgrounds: bool = True  # False: black background
    use_generated_assets: bool = False  # random sprites; changes the levels; no saving, no choice of level
    use_monochrome_assets: bool = False  # one flat colour per kind of object
    restrict_themes: bool = False  # use only the first set of sprites
    use_sequential_levels: bool = False  # a solved level continues with level + 997, ignoring the level set
    paint_vel_info: bool = False  # show the agent's velocity as two grey squares, in games that have one
    debug_mode: int = 0  # passed to the library; 0: off
    hidden: bool = False  # Hidden Maze (Appendix A): only the agent is visible; implies HIDDEN_OPTIONS

    def __post_init__(self) -> None:
        check_choice("game", self.game, GAMES)
        check_choice("distribution_mode", self.distribution_mode, MODES)
        check_choice(f"game of mode {self.distribution_mode}", self.game, MODES[self.distribution_mode][1])
        if self.hidden and self.game != "maze":
            raise InputError(f"hidden is True for the game {self.game}; accepted: True for maze only")

    def options(self) -> dict[str, str | int | bool]:
        """Return the library's options, without levels and threads."""
        fields = asdict(self) | (HIDDEN_OPTIONS if self.hidden else {})
        del fields["game"], fields["hidden"]
        return fields | {
            "env_name": self.game,
            "distribution_mode": MODES[self.distribution_mode][0],
            "num_actions": ProcgenEnv.num_actions,
        }


def make_procgen(
    config: ProcgenConfig,
    levels: LevelSet,
    num_envs: int,
    seed: int,
    threads: int,
    full_view: bool,
    human_view: bool = False,
) -> VecEnv:
    """Make `num_envs` games of `config.game` on `levels`, stepped by `threads` C threads (0: inside `act`).

    With `full_view`, a game whose view follows the agent is played twice in lock-step, with half the threads each, and
    `full` is the uncentred view. All other games show the whole level, so `full` is `obs`. With `human_view` the
    library also draws each game large, for `picture`; observations stay the same.
    """
    if config.distribution_mode == "exploration":
        levels = _exploration_level(config.game, levels)
    options = config.options() | {"render_human": human_view}
    is_controlled = not options["use_generated_assets"]
    if full_view and config.center_agent and config.game in CENTRED:
        if not is_controlled:
            raise InputError(f"use_generated_assets is True; accepted for r_I in {config.game}: False")
        uncentred = replace(config, center_agent=False).options()
        arguments = (levels, num_envs, seed, (threads + 1) // 2)
        return UncentredTwin(ControlledProcgenEnv(options, *arguments), ControlledProcgenEnv(uncentred, *arguments))
    env = (ControlledProcgenEnv if is_controlled else ProcgenEnv)(options, levels, num_envs, seed, threads)
    return HiddenMaze(env) if config.hidden else env


def _exploration_level(game: str, levels: LevelSet) -> LevelSet:
    level = EXPLORATION_LEVELS[game]
    if levels.seeds is not None and tuple(levels.seeds) != (level,):
        raise InputError(f"levels is {levels} in exploration mode; accepted: all, which is level {level} in this mode")
    return LevelSet(range(level, level + 1))
