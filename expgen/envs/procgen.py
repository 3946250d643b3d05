"""ProcGen by name: its 16 games, their modes and options, and the environment made of them."""

from dataclasses import asdict, dataclass, replace
from typing import Literal

from expgen.envs.levels import LevelSet
from expgen.envs.procgen_env import ControlledProcgenEnv, ProcgenEnv
from expgen.envs.vec_env import VecEnv
from expgen.envs.views import HiddenMaze, UncentredTwin
from expgen.errors import InputError, check_choice, check_range
from expgen.settings import LAST_SEED

GAMES = (
    *("bigfish", "bossfight", "caveflyer", "chaser", "climber", "coinrun", "dodgeball", "fruitbot"),
    *("heist", "jumper", "leaper", "maze", "miner", "ninja", "plunder", "starpilot"),
)
CENTRED = frozenset(("caveflyer", "climber", "coinrun", "fruitbot", "jumper", "ninja"))
"""Games whose view follows the agent, in every mode they have; the others show the whole level whatever we ask."""

EXPLORATION_LEVELS = {  # exploration mode is this one level of hard mode
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
HIDDEN_OPTIONS = {  # Appendix A: flat colours on black, so that the mask can tell the agent from all else
    "use_generated_assets": True,
    "use_monochrome_assets": True,
    "restrict_themes": True,
    "use_backgrounds": False,
}


@dataclass(frozen=True)
class ProcgenConfig:
    """One game and its options; the defaults are those of the paper's experiments."""

    game: str  # one of GAMES
    distribution_mode: Literal["easy", "hard", "extreme", "memory", "exploration"] = "easy"  # not all games have all
    center_agent: bool = True  # the view follows the agent, in CENTRED games
    use_backgrounds: bool = True  # False: black
    use_generated_assets: bool = False  # sprites drawn at random; other layouts per level, and no saving or choosing
    use_monochrome_assets: bool = False  # one flat colour per kind of object
    restrict_themes: bool = False  # always the first set of sprites
    use_sequential_levels: bool = False  # a solved level leads to level + 997, in the same episode, out of any set
    paint_vel_info: bool = False  # the agent's speed as two grey squares, where it matters
    debug_mode: int = 0  # the library's own; 0 is off
    hidden: bool = False  # Hidden Maze (Appendix A): only the agent is seen; implies HIDDEN_OPTIONS

    def __post_init__(self) -> None:
        check_choice("game", self.game, GAMES)
        check_choice("distribution_mode", self.distribution_mode, MODES)
        check_choice(f"game of mode {self.distribution_mode}", self.game, MODES[self.distribution_mode][1])
        if self.hidden and self.game != "maze":
            raise InputError(f"hidden is True for the game {self.game}; accepted: True for maze alone")

    def options(self) -> dict[str, str | int | bool]:
        """What the library is told, levels and threads apart."""
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
    """`num_envs` games of `config.game` on `levels`, stepped by `threads` C threads (0: inside `act`).

    With `full_view` a game that centres its agent is played twice, in lock-step, by half the threads each; `full` is
    then the uncentred view. Every other game already shows the whole level, and `full` is `obs`. With `human_view` the
    library also draws each game large, for `picture`; what agents see stays the same.
    """
    check_range("seed", seed, 0, LAST_SEED)
    check_range("threads", threads, 0)
    if config.distribution_mode == "exploration":
        levels = _exploration_level(config.game, levels)
    options = config.options() | {"render_human": human_view}
    is_controlled = not options["use_generated_assets"]
    if full_view and config.center_agent and config.game in CENTRED:
        if not is_controlled:
            raise InputError(f"use_generated_assets is True; accepted where r_I is measured on {config.game}: False")
        uncentred, rest = replace(config, center_agent=False).options(), (levels, num_envs, seed, (threads + 1) // 2)
        return UncentredTwin(ControlledProcgenEnv(options, *rest), ControlledProcgenEnv(uncentred, *rest))
    env = (ControlledProcgenEnv if is_controlled else ProcgenEnv)(options, levels, num_envs, seed, threads)
    return HiddenMaze(env) if config.hidden else env


def _exploration_level(game: str, levels: LevelSet) -> LevelSet:
    level = EXPLORATION_LEVELS[game]
    if levels.seeds is not None and tuple(levels.seeds) != (level,):
        raise InputError(f"levels is {levels} in exploration mode; accepted: all, which here means level {level}")
    return LevelSet(range(level, level + 1))
