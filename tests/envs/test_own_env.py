"""Environments of the user: all accepted forms make the same games; invalid ones raise one-line errors."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import expgen
from expgen import plugins
from expgen.envs.gymnasium_env import GymnasiumEnv
from expgen.envs.levels import LevelSet
from expgen.envs.make import build_env, make_env
from expgen.envs.minimaze import Minimaze, MinimazeConfig
from expgen.envs.own_env import OWN_ENVS, register_env
from expgen.envs.vec_env import VecEnv
from expgen.errors import InputError

gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium is missing: pip install 'expgen[gymnasium]'")
Box, Discrete = gymnasium.spaces.Box, gymnasium.spaces.Discrete


class Walk(gymnasium.Env):
    """Observations are a random number of the level and the remaining steps; action 1 ends the episode."""

    observation_space, action_space = Box(-1, 1, (2,)), Discrete(2)

    def __init__(self, length: int = 5, render_mode: str | None = None) -> None:
        self.length, self.render_mode = length, render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.shade, self.left = self.np_random.random(), self.length
        return self.seen(), {}

    def step(self, action: int) -> Any:
        self.left -= 1
        return self.seen(), float(action), action == 1, self.left == 0, {}

    def seen(self) -> np.ndarray:
        return np.array([self.shade, self.left / 10], dtype=np.float32)

    def render(self) -> Any:
        return np.zeros((8, 8, 3), dtype=np.uint8) if self.render_mode == "rgb_array" else None


class Half(gymnasium.ObservationWrapper):
    """Observations times `share`."""

    def __init__(self, env: Any, share: float = 0.5) -> None:
        super().__init__(env)
        self.share = share

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return observation * np.float32(self.share)


class Mazes(Minimaze):
    """A user's VecEnv class."""

    def __init__(self, levels: LevelSet, num_envs: int, seed: int, max_cells: int = 3) -> None:
        super().__init__(levels, num_envs, seed, MinimazeConfig(max_cells=max_cells))


def walks(length: int = 5) -> Walk:
    return Walk(length)


@pytest.fixture(autouse=True)
def own_table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo the registrations of each test."""
    before = dict(OWN_ENVS)
    for table in ("_TRUSTED", "_FOLDERS", "_ORIGINS"):
        monkeypatch.setattr(plugins, table, {})
    yield
    OWN_ENVS.clear()
    OWN_ENVS.update(before)


def frames(env: VecEnv, num_steps: int = 12) -> list[np.ndarray]:
    """Return obs, reward, level and first of each step of random play."""
    rng, seen = np.random.default_rng(0), []
    for _ in range(num_steps):
        observation = env.observe()
        seen += [part.copy() for part in (observation.obs, observation.reward, observation.level, observation.first)]
        env.act(rng.integers(env.spec.num_actions, size=env.num_envs).astype(np.int32))
    env.close()
    return seen


def same(one: VecEnv, other: VecEnv) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(frames(one), frames(other), strict=True))


WAYS: dict[str, Callable[[], Any]] = {
    "a class": lambda: Walk,
    "a function": lambda: walks,
    "a lambda": lambda: lambda: Walk(),
    "a partial": lambda: partial(Walk, 5),
    "an environment": lambda: Walk(),
    "a wrapped environment": lambda: gymnasium.wrappers.TimeLimit(Walk(), 50),
}


@pytest.mark.parametrize("way", WAYS)
def test_make_env_accepts_classes_functions_and_instances(way: str) -> None:
    register_env("walk", Walk)
    assert same(make_env(WAYS[way](), (3, 7), 3, seed=1), make_env("walk", (3, 7), 3, seed=1))


def test_environment_instance_is_copied_and_not_stepped() -> None:
    mine = Walk()
    mine.reset(seed=5)
    env = make_env(mine, (3,), 4)
    frames(env)
    assert mine.left == 5 and isinstance(env, GymnasiumEnv) and env.num_envs == 4


def test_options_go_to_factory_and_levels_to_reset() -> None:
    register_env("walk", Walk)
    env = make_env("walk", (3, 7), 2, length=2)
    seen = env.observe()
    for index, level in enumerate(seen.level.tolist()):
        assert seen.obs[index].tolist() == pytest.approx(Walk(2).reset(seed=level)[0].tolist())


def test_factory_with_num_envs_makes_a_vec_env() -> None:
    env = make_env(Mazes, "100:7", 5, seed=2)
    assert isinstance(env, Mazes) and "Mazes" in OWN_ENVS
    assert same(env, make_env("minimaze", "100:7", 5, seed=2, max_cells=3))
    assert make_env("Mazes", 5, 2, max_cells=5).spec.obs_shape == (11, 11, 3)


@pytest.mark.parametrize("way", [partial(Mazes, max_cells=3), lambda levels, num_envs: Mazes(levels, num_envs, 2)])
def test_unnamed_vec_env_factory_gets_its_class_name(way: Any) -> None:
    env = make_env(way, "100:7", 5, seed=2)
    assert "Mazes" in OWN_ENVS and same(env, make_env("minimaze", "100:7", 5, seed=2, max_cells=3))


class _Private(Walk):
    """A private class of its module."""


@pytest.mark.parametrize("env", [_Private, _Private()])
def test_private_class_is_named_without_underscore(env: Any) -> None:
    assert make_env(env, 5, 1).spec.name == "Private"


@pytest.mark.parametrize(
    "wrappers", [[Half], [f"{__name__}:Half"], f"{__name__}:Half", [f"{__name__}:Half(share=0.5)"]]
)
def test_wrappers_apply_to_each_game(wrappers: Any) -> None:
    plain, wrapped = make_env(Walk, (3, 7), 2), make_env(Walk, (3, 7), 2, wrappers=wrappers)
    assert np.array_equal(wrapped.observe().obs, plain.observe().obs / 2)


def test_wrappers_apply_in_order() -> None:
    env = make_env(Walk, (3,), 1, wrappers=[Half, "gymnasium.wrappers:RescaleObservation(min_obs=0.0, max_obs=1.0)"])
    shade = Walk().reset(seed=3)[0][0]
    assert env.observe().obs[0, 0] == pytest.approx((shade / 2 + 1) / 2)


def test_only_the_registering_module_can_register_a_name_again() -> None:
    register_env("walk", Walk)
    register_env("walk", walks)
    assert OWN_ENVS["walk"] is walks
    exec("import expgen; taken = lambda: expgen.register_env('walk', print)", other := {"__name__": "other_module"})
    with pytest.raises(InputError, match="name of the environment is 'walk', which is taken; accepted: another name"):
        other["taken"]()


def test_unregistered_environment_gets_a_free_name() -> None:
    register_env("Walk", Walk)
    assert make_env(Walk(3), 5, 1).spec.name == "Walk-2"
    assert make_env(Walk(4), 5, 1).spec.name == "Walk-2"  # names of this process only can be replaced
    assert make_env(Walk, 5, 1).spec.name == "Walk"


def test_own_env_trains_and_evaluates_from_python(small: Any, tmp_path: Path) -> None:
    run = small.train(tmp_path / "run", 1, env=Walk, wrappers=[Half], options={"length": 4})
    assert run.config.env == "Walk" and run.config.options == {"length": 4, "wrappers": f"{__name__}:Half"}
    agent = expgen.load_agent(tmp_path / "run")
    scores = expgen.evaluate(agent, Walk, episodes=6, levels="50:5", length=4, wrappers=[Half])
    assert len(scores.episodes) == 6 and all(50 <= episode.level < 55 for episode in scores.episodes)


FILE = """
import expgen
from tests.envs.test_own_env import Mazes, Walk
expgen.register_env("file-walk", Walk)
expgen.register_env("file-mazes", Mazes)
"""


@pytest.mark.parametrize("env", ["file-walk", "file-mazes"])
def test_imported_env_trains_evaluates_and_plays_from_cli(
    env: str, small: Any, tmp_path: Path, command: Callable[..., Any], refused: Callable[..., str], monkeypatch: Any
) -> None:
    (tmp_path / "my_envs.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_envs", raising=False)
    run = tmp_path / "run"
    assert "accepted: minimaze, " in refused(*small.flags(run, 1), "--env", env)
    done = command(*small.flags(run, 1), "--env", env, "--import", "my_envs")
    assert done.status == 0, done.err
    assert command("evaluate", run, "--episodes", 2, "--import", "my_envs").status == 0
    assert command("play", run, "--out", tmp_path / "episode.html", "--import", "my_envs.py").status == 0
    OWN_ENVS.pop(env)
    monkeypatch.setattr(plugins, "_TRUSTED", {})
    assert f"--env is '{env}'; accepted: " in refused("evaluate", run, "--episodes", 2)  # it imports nothing


def test_workers_import_plugins_and_reject_environments_of_scripts(
    small: Any, tmp_path: Path, command: Callable[..., Any], monkeypatch: Any
) -> None:
    (tmp_path / "my_cart.py").write_text(
        "import expgen, gymnasium\nexpgen.register_env('cart', lambda: gymnasium.make('CartPole-v1'))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    words = ("--env", "cart", "--import", "my_cart", "--members", 2, "--processes", 2)
    done = command(*small.flags(tmp_path / "run", 1), *words)
    assert done.status == 0, done.err
    with pytest.raises(InputError, match="--env is 'Walk', which other processes do not know; accepted: --processes 1"):
        small.train(tmp_path / "other", 1, env=Walk, members=2, processes=2)


class NoSeed(Walk):
    def reset(self) -> Any:  # type: ignore[override]
        return super().reset()


class OldReset(Walk):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=seed)[0]


class OldStep(Walk):
    def step(self, action: int) -> Any:
        return super().step(action)[:4]


class Ragged(Walk):
    def seen(self) -> Any:
        return [[1.0], [1.0, 2.0]]


class Moving(Walk):
    action_space = Box(-1, 1, (2,))


class Uncopied(Walk):
    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("holds a window")


def takes_num_envs_but_makes_one_game(num_envs: int) -> Any:
    return Walk()


INVALID: list[tuple[str, Callable[[], Any], str]] = [
    ("a number", lambda: make_env(3), "env is 3; accepted: a name, a Gymnasium environment, or"),
    ("nothing", lambda: make_env(None), "env is None; accepted: a name"),
    ("a list", lambda: make_env(["minimaze"]), r"env is \['minimaze'\]; accepted: a name"),
    ("an unknown name", lambda: make_env("gridwold"), "--env is 'gridwold'; accepted: minimaze, .* --import"),
    ("an unknown ID", lambda: make_env("Nothing-v9"), "--env is 'gymnasium:Nothing-v9'; accepted: the ID"),
    ("an instance of a VecEnv", lambda: make_env(make_env("minimaze")), "env is .*inimaze.*, an instance of a VecEnv"),
    (
        "a function that returns a number",
        lambda: make_env(lambda: 3, 5, 1),
        "'int', which makes a int; accepted: a Gymnasium env",
    ),
    ("an unrelated class", lambda: make_env(Path, 5, 1), "'Path', which makes a P.*; accepted: a Gymnasium env"),
    (
        "num_envs but no VecEnv",
        lambda: make_env(takes_num_envs_but_makes_one_game, 5, 1),
        "makes .*Walk.* without levels, num_envs, act, ",
    ),
    (
        "an unknown option",
        lambda: make_env(Walk, 5, 1, lenght=3),
        "unexpected keyword argument 'lenght'; accepted opt",
    ),
    ("a missing argument", lambda: make_env(Half, 5, 1), "missing a required argument: 'env'; accepted options: env"),
    ("reset without a seed", lambda: make_env(NoSeed, 5, 1), "reset takes no seed; accepted: reset"),
    (
        "reset of the old API",
        lambda: make_env(OldReset, 5, 1),
        "'OldReset', whose reset does not return a pair; accepted: obs, info",
    ),
    (
        "step of the old API",
        lambda: frames(make_env(OldStep, 5, 1)),
        "step returns 4 values; accepted: obs, reward, term",
    ),
    ("continuous actions", lambda: make_env(Moving, 5, 1), "with actions Box.*; accepted: Discrete actions"),
    (
        "an instance that cannot be copied",
        lambda: make_env(Uncopied(), 5, 1),
        "cannot be copied .*window.*; accepted: a func",
    ),
    ("ragged observations", lambda: make_env(Ragged, 5, 1), r"shape unknown, type list; accepted: \(2,\), as its obs"),
    (
        "an option that the constructor rejects",
        lambda: make_env("FrozenLake-v1", 5, 1, map_name="9x9"),
        "accepted: the ID of a Gymnasium environment and options that it takes .*9x9",
    ),
    ("no environments", lambda: make_env(Walk, 5, 0), "num_envs is 0; accepted: 1 to 65536"),
    ("a reserved name", lambda: register_env("maze", Walk), "name of the environment is 'maze', which is reserved"),
    ("a name with a colon", lambda: register_env("a:b", Walk), "name of the environment is 'a:b'; accepted: letters"),
    ("a name with a leading underscore", lambda: register_env("_a", Walk), "is '_a'; .*the first a letter or digit"),
    ("an empty name", lambda: register_env("", Walk), "name of the environment is ''; accepted: letters"),
    ("a number as name", lambda: register_env(7, Walk), "name of the environment is 7; accepted: letters"),  # type: ignore[arg-type]
    (
        "an environment as factory",
        lambda: register_env("w", Walk()),
        "factory of .* 'w' is .*; accepted: a class",
    ),  # type: ignore[arg-type]
    ("a module that fails", lambda: plugins.import_module("bad_module"), "--import is 'bad_module'.*ZeroDivisionError"),
    ("a module that exits", lambda: plugins.import_module("exits"), "--import is 'exits'; accepted: .*SystemExit"),
    ("no such module", lambda: plugins.import_module("no.such"), "--import is 'no.such'; accepted: a module"),
    ("no such file", lambda: plugins.import_module("no/such.py"), "--import is 'no/such.py', which is not a file"),
    (
        "a file with another module's name",
        lambda: plugins.import_module("json.py"),
        "'json' is .*; accepted: another file name",
    ),
]


@pytest.mark.parametrize(("call", "message"), [pytest.param(*case[1:], id=case[0]) for case in INVALID])
def test_make_env_rejects_invalid_environments_in_one_line(
    call: Callable[[], Any], message: str, tmp_path: Path, monkeypatch: Any
) -> None:
    (tmp_path / "bad_module.py").write_text("1 / 0")
    (tmp_path / "exits.py").write_text("raise SystemExit")
    (tmp_path / "json.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(InputError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


BAD_WRAPPERS: list[tuple[Any, str]] = [
    (3, "wrappers is 3; accepted: MODULE:CLASS"),
    ("", "--wrapper is ''; accepted: MODULE:CLASS"),
    ("Half", "--wrapper is 'Half'; accepted"),
    (":Half", "--wrapper is ':Half'; accepted"),
    ("os:", "--wrapper is 'os:'; accepted"),
    ("a b:C", "--wrapper is 'a b:C'; accepted"),
    ("a:b.c", "--wrapper is 'a:b.c'; accepted"),
    ("a:b:c", "--wrapper is 'a:b:c'; accepted"),
    ([Half, 3], "wrappers has 3; accepted"),
    ([lambda env: env], "wrappers has .*lambda.*; accepted: .*at the top of a module"),
    (["gymnasium.wrappers:NoSuch"], "'gymnasium.wrappers:NoSuch'; accepted: a class or function that gymn"),
    (["no_such_module:Wrapper"], "'no_such_module:Wrapper'; accepted: a module that can be imported"),
    ([f"{__name__}:np"], ":np'; accepted: a class or function that .* defines"),
    ([f"{__name__}:partial"], ":partial'; accepted: a class or function that .* defines"),  # defined in another module
    ([f"{__name__}:Half(0.5)"], r"Half\(0.5\)'; accepted: .*NAME=VALUE"),
    ([f"{__name__}:Half(share=)"], r"Half\(share=\)'; accepted"),
    ([f"{__name__}:Half(share=open('x'))"], "accepted: .*values as Python literals"),
    ([f"{__name__}:Half(**{{}})"], "accepted: .*NAME=VALUE"),
    ([f"{__name__}:Half(share={{[]: 1}})"], "accepted: .*values as Python literals"),
    ([f"{__name__}:Half(share={'-' * 3000}1)"], "accepted: .*values as Python literals"),
    ([f"{__name__}:Half(share={'-' * 100_000}1)"], "accepted: .*values as Python literals"),
    ([f"{__name__}:Half(size=3)"], "--wrapper Half does not fit 'Walk': .*unexpected keyword argument 'size'"),
    (
        ["gymnasium.wrappers:FlattenObservation", "gymnasium.wrappers:GrayscaleObservation"],
        "GrayscaleObs.* does not fit",
    ),
]


@pytest.mark.parametrize(("wrappers", "message"), BAD_WRAPPERS)
def test_make_env_rejects_invalid_wrappers_in_one_line(wrappers: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        make_env(Walk, 5, 1, wrappers=wrappers)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("env", ["minimaze", Mazes])
def test_wrappers_are_rejected_for_vec_envs(env: Any) -> None:
    with pytest.raises(InputError, match=r"accepted with .*: Gymnasium environments"):
        make_env(env, 5, 1, wrappers=[Half])


def test_wrapper_named_only_in_a_file_is_not_imported(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "unnamed_wrapper.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(str(tmp_path))
    for env in ("gymnasium:CartPole-v1", "minimaze"):
        with pytest.raises(InputError, match="accepted: --import unnamed_wrapper, if you trust it"):
            build_env(env, 3, 1, wrappers="unnamed_wrapper:W")


def test_unknown_env_name_loads_entry_points(tmp_path: Path, monkeypatch: Any) -> None:
    info = tmp_path / "my_games-1.0.dist-info"  # of an installed package with two entry points
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-games\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[expgen.plugins]\ngood = my_good_games\nbroken = my_broken_games\n")
    game = "import expgen, gymnasium\nexpgen.register_env('installed', lambda: gymnasium.make('CartPole-v1'))\n"
    (tmp_path / "my_good_games.py").write_text(game)
    (tmp_path / "my_broken_games.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.load_entry_points.cache_clear()
    make_env("minimaze", 3, 1)
    assert "my_good_games" not in sys.modules
    with pytest.warns(UserWarning, match=r"plug-in broken \(my_broken_games\) was not loaded: ZeroDivisionError"):
        assert make_env("installed", 3, 1).spec.num_actions == 2
    plugins.load_entry_points.cache_clear()
    del sys.modules["my_good_games"]
