"""expgen.register: registered names work in every command; invalid registrations are refused."""

import dataclasses
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import expgen
from expgen import plugins
from expgen.agents.own_agent import OWN_AGENTS
from expgen.algorithms.plr import PlrConfig
from expgen.algorithms.ppo import PPO, PPOConfig
from expgen.algorithms.recipes import RECIPES, REWARDS, recipe_of
from expgen.envs.own_env import OWN_ENVS
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, make_policy
from expgen.networks.own_encoder import OWN_ENCODERS
from expgen.reward.source import GameReward, RewardSource
from expgen.rollout.level_replay import LevelReplay
from expgen.rollout.rollout import Rollout
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import make_config
from expgen.runs.register import register

EXAMPLES = Path(expgen.__file__).parents[1] / "examples"
TABLES: tuple[dict[str, Any], ...] = (RECIPES, REWARDS, OWN_ENCODERS, OWN_AGENTS, OWN_ENVS)
CPU = torch.device("cpu")
MAZE = EnvSpec("minimaze", (11, 11, 3), "uint8", 5)


@pytest.fixture(autouse=True)
def own_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remove the names and modules that a test registers."""
    before, modules = [dict(table) for table in TABLES], set(sys.modules)
    for table in ("_TRUSTED", "_FOLDERS", "_ORIGINS"):
        monkeypatch.setattr(plugins, table, {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for table, entries in zip(TABLES, before, strict=True):
        table.clear()
        table.update(entries)
    for module in set(sys.modules) - modules:
        if module.startswith(("own_", "my_")):
            del sys.modules[module]


@dataclass(frozen=True)
class Settings:
    gamma: float = 0.5
    gae_lambda: float = 0.9


class OneStep(PPO):
    """PPO with one epoch."""

    def __init__(self, policy: Any, config: Any) -> None:
        super().__init__(policy, PPOConfig(gamma=config.gamma, gae_lambda=config.gae_lambda, epochs=1, minibatches=2))


class Ones(RewardSource):
    """A reward of 1 for every step."""

    def __init__(self, config: Any, num_envs: int) -> None:
        self.intrinsic = torch.zeros(0, num_envs)

    def __call__(self, rollout: Any) -> torch.Tensor:
        self.intrinsic = torch.ones_like(rollout.reward)
        return self.intrinsic


class Flat(nn.Module):
    """One dense layer."""

    def __init__(self, obs_shape: tuple[int, ...], features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(int(np.prod(obs_shape)), features)
        self.register_buffer("scale", torch.tensor(1 / 255), persistent=False)

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return self.linear(obs.flatten(1) * self.scale)


class Still:
    """An agent that always takes the last action."""

    def __init__(self, policies: dict[str, Any], spec: EnvSpec, seed: int) -> None:
        self.policies, self.spec = policies, spec

    def act(self, obs: np.ndarray, first: np.ndarray, episode: np.ndarray | None = None) -> np.ndarray:
        return np.full(len(first), self.spec.num_actions - 1, dtype=np.int32)


FILE = f"""
from dataclasses import dataclass
import expgen
exec(open({str(EXAMPLES / "own_reward.py")!r}).read())
exec(open({str(EXAMPLES / "own_algorithm.py")!r}).read())

@expgen.register("agent", "first-member")
class First:
    def __init__(self, policies, spec, seed):
        from expgen.agents.agent import PolicyAgent
        self.agent = PolicyAgent(policies["member0"], seed)
    def act(self, obs, first, episode=None):
        return self.agent.act(obs, first, episode)
"""


def test_registered_module_works_in_train_evaluate_play_and_report(
    small: Any, tmp_path: Path, command: Callable[..., Any], refused: Callable[..., str], monkeypatch: Any
) -> None:
    (tmp_path / "my_methods.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    run, named = tmp_path / "run", ("--import", "my_methods")
    flags = small.flags(run, 2, algo="expgen-a2c+rnd", members=2, eval_every=256)
    flags += [f"--{name.replace('_', '-')}={value}" for name, value in small.explorer.items()]
    assert "--algo is 'expgen-a2c+rnd'; accepted: ppo, " in refused(*flags)
    done = command(*flags, *named, "--value-coef", 0.25, "--rnd-rate", 0.001)
    assert done.status == 0, done.err
    config = RunFolder(run).read_config()[0]
    assert config.algorithm.value_coef == 0.25 and config.explorer.reward.rnd_rate == 0.001
    assert command("train", "--resume", "--run", run, "--steps", 3 * small.update_steps, *named).status == 0
    assert command("evaluate", run, "--episodes", 3, *named).status == 0
    assert command("evaluate", run, "--episodes", 3, "--learner", "first-member", *named).status == 0
    assert command("play", run, "--out", tmp_path / "a.html", *named).status == 0
    assert command("play", run, "--learner", "first-member", "--out", tmp_path / "b.gif", *named).status == 0
    reported = command("report", run, "--out", tmp_path / "report")  # needs no import
    assert reported.status == 0, reported.err
    text = (tmp_path / "report" / "report.html").read_text()
    assert "expgen-a2c+rnd" in text and "first-member" in text


def test_run_of_an_unknown_algorithm_imports_nothing(
    small: Any, tmp_path: Path, refused: Callable[..., str], monkeypatch: Any
) -> None:
    register("algorithm", "one-step", OneStep, Settings())
    small.train(tmp_path / "run", 1, algo="one-step")
    del RECIPES["one-step"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one-step.py").write_text("raise RuntimeError")
    for words in (("evaluate", "run"), ("play", "run"), ("train", "--resume", "--run", "run")):
        assert "--algo is 'one-step'; accepted: ppo, " in refused(*words)


@pytest.fixture(autouse=True)
def only_common_settings(small: Any, monkeypatch: Any) -> None:
    """Remove settings that registered algorithms do not have."""
    monkeypatch.setattr(
        small, "settings", {k: v for k, v in small.settings.items() if k not in ("minibatches", "epochs")}
    )


EXAMPLE_SETTINGS = [
    ("own_reward", {"algo": "rnd"}),
    ("own_algorithm", {"algo": "a2c"}),
    ("own_encoder", {"encoder": "mixer"}),
]


@pytest.mark.parametrize(("file", "settings"), EXAMPLE_SETTINGS)
def test_example_has_at_most_forty_lines_and_resumes_bit_equal(
    file: str, settings: dict[str, Any], small: Any, tmp_path: Path, equal: Callable[..., bool]
) -> None:
    text = (EXAMPLES / f"{file}.py").read_text()
    assert len(text.splitlines()) <= 40 and f"expgen train --import examples/{file}.py" in text
    plugins.import_module(str(EXAMPLES / f"{file}.py"))
    small.train(tmp_path / "whole", 4, **settings)
    for updates in (2, 4):
        small.train(tmp_path / "parts", updates, resume=True, **settings)
    assert equal(small.state(tmp_path / "whole"), small.state(tmp_path / "parts"))


def test_rnd_example_pays_less_for_familiar_observations(small: Any, tmp_path: Path) -> None:
    plugins.import_module(str(EXAMPLES / "own_reward.py"))
    config, build = REWARDS["rnd"]
    reward = build(dataclasses.replace(config, rnd_rate=1e-3), 2)
    reward.prepare(EnvSpec("minimaze", (5, 5, 3), "uint8", 5), CPU, 0)
    rollout = Rollout(EnvSpec("minimaze", (5, 5, 3), "uint8", 5), 4, 2, 0, CPU)
    rollout.obs[:, 0] = 200  # the same frame at every step
    generator = torch.Generator().manual_seed(0)
    rollout.obs[:, 1].random_(0, 256, generator=generator)
    rollout.first[2, 1] = True
    first = reward(rollout).clone()
    assert first.shape == (4, 2) and first[1, 1] == 0
    for _ in range(200):
        rollout.obs[:, 1].random_(0, 256, generator=generator)
        last = reward(rollout)
    assert last[0, 0] / last[0, 1] < 0.5 * first[0, 0] / first[0, 1]


def test_a2c_example_follows_the_gradient_of_its_loss(small: Any, tmp_path: Path) -> None:
    """One update on a rollout of one action: its probability rises where the advantage is positive."""
    plugins.import_module(str(EXAMPLES / "own_algorithm.py"))
    policy = make_policy(MAZE, NetworkConfig(features=16), torch.Generator().manual_seed(0), CPU)
    rollout = Rollout(MAZE, 4, 2, 0, CPU)
    rollout.obs.random_(0, 256, generator=torch.Generator().manual_seed(0))
    rollout.action.fill_(3)
    rollout.advantage.fill_(1.0)
    algorithm = RECIPES["a2c"].build(policy, dataclasses.replace(RECIPES["a2c"].config, entropy_coef=0.0))

    @torch.no_grad()
    def probability() -> float:
        return float(policy(rollout.obs[:-1], rollout.first[:-1], rollout.state[0]).logits.softmax(-1)[..., 3].mean())

    before = probability()
    (metrics,) = algorithm.update(rollout, torch.Generator())
    assert probability() > before and metrics["policy_loss"] == pytest.approx(np.log(5), abs=0.05)


def test_registered_algorithm_is_built_with_its_config_reward_and_network() -> None:
    register("reward", "ones", Ones)
    register("algorithm", "one-step", OneStep, Settings(), reward="ones", run={"envs": 7}, needs_full_view=True)
    recipe, config = recipe_of("one-step"), make_config("minimaze", "one-step", "paper", gamma=0.25)
    assert recipe.summary == "PPO with one epoch" and recipe.build_reward is Ones and recipe.needs_full_view
    assert (config.envs, config.algorithm) == (7, Settings(gamma=0.25))
    ensemble = recipe_of("expgen-one-step+ones")
    assert (ensemble.member, ensemble.explorer, ensemble.build) == ("one-step", "ones", OneStep)
    assert recipe_of("expgen+ones").member == "ppo" and recipe_of("ones").network.memory == "gru"
    assert make_config("minimaze", "ones", "laptop").algorithm.gamma == 0.9  # the discount belongs to the reward
    assert recipe_of("expgen").build_reward is GameReward


def test_registered_encoder_is_initialised_from_the_seed_and_keeps_its_buffers() -> None:
    register("encoder", "flat", Flat)
    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    one, other, third = (
        make_policy(MAZE, NetworkConfig(encoder="flat", features=8), torch.Generator().manual_seed(seed), CPU)
        for seed in (0, 0, 1)
    )
    assert torch.equal(torch.random.get_rng_state(), state)
    weights = [policy.encoder.encoder.linear.weight for policy in (one, other, third)]  # type: ignore[union-attr]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
    assert one.encoder.encoder.scale == torch.tensor(1 / 255)  # type: ignore[union-attr]
    assert weights[0].std().item() == pytest.approx(1 / np.sqrt(3 * 363), rel=0.1)  # torch's default: ±1/√inputs


def test_registered_agent_gets_all_policies_of_a_run(small: Any, tmp_path: Path) -> None:
    register("agent", "still", Still)
    small.train(tmp_path / "run", 1, members=2)
    agent = expgen.load_agent(tmp_path / "run", learner="still")
    assert isinstance(agent, Still) and sorted(agent.policies) == ["member0", "member1"]
    scores = expgen.evaluate(agent, "minimaze", episodes=2, levels=5)
    assert len(scores.episodes) == 2


def test_agent_in_the_docs_plays(small: Any, tmp_path: Path) -> None:
    page = (EXAMPLES.parent / "docs" / "extending.md").read_text()
    exec(page.split("```python\n")[1].split("```")[0], {"__name__": "my_vote"})
    small.train(tmp_path / "run", 1, members=2)
    agent = expgen.load_agent(tmp_path / "run", learner="mean-vote")
    assert len(expgen.evaluate(agent, "minimaze", episodes=2, levels=5).episodes) == 2


def call(*words: Any, **details: Any) -> Callable[[], Any]:
    return lambda: register(*words, **details)


@dataclass(frozen=True)
class Clash(Settings):
    steps: int = 3


@dataclass(frozen=True)
class Without:
    gamma: float = 0.9


class Wrong(Flat):
    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return super().forward(obs)[:, :-1]


class Failing(Flat):
    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return obs.no_such_method()  # type: ignore[operator]


def with_encoder(make: Any, **settings: Any) -> Callable[[], Any]:
    def build() -> Any:
        register("encoder", "mine", make)
        config = NetworkConfig(**{"encoder": "mine", "features": 8, **settings})
        return make_policy(MAZE, config, torch.Generator(), CPU)

    return build


LEARNS = ("algorithm", "mine", OneStep)
WRONG: dict[str, list[tuple[str, Callable[[], Any], str]]] = {
    "algorithm": [
        ("kind", call("algoritm", "mine", OneStep), "kind is 'algoritm'; accepted: algorithm, reward, encoder, agent,"),
        ("kind of another type", call(OneStep, "mine"), "kind is <class .*; accepted: algorithm, reward"),
        ("empty name", call("algorithm", "", OneStep, Settings()), "name of the algorithm is ''; accepted: letters"),
        ("name with a plus", call("algorithm", "a+b", OneStep, Settings()), r"is 'a\+b'; accepted: letters"),
        ("name with a slash", call("algorithm", "a/b", OneStep, Settings()), "is 'a/b'; accepted: letters"),
        ("name of another type", call("algorithm", 3, OneStep, Settings()), "is 3; accepted: letters"),
        ("built-in name", call("algorithm", "ppo", OneStep, Settings()), "is 'ppo', which is taken; accepted: another"),
        ("population's name", call("algorithm", "expgen", OneStep, Settings()), "is 'expgen', which is taken"),
        ("number", call("algorithm", "mine", 3, Settings()), "algorithm 'mine' is 3; accepted: a class or function"),
        ("text", call("algorithm", "mine", "OneStep"), "algorithm 'mine' is 'OneStep'; accepted: a class"),
        ("no config", call(*LEARNS), "config of 'mine' has no gamma; accepted: a float"),
        ("config's class", call(*LEARNS, Settings), "config of 'mine' is <class .*; accepted: an instance of a data"),
        ("dict as config", call(*LEARNS, {"gamma": 0.9}), "config of 'mine' is {.*; accepted: an instance of a data"),
        ("half a config", call(*LEARNS, Without()), "config of 'mine' has no gae_lambda; accepted"),
        ("no number", call(*LEARNS, Settings(gamma="1")), "config of 'mine' has no gamma; accepted"),  # type: ignore[arg-type]
        ("name of another setting", call(*LEARNS, Clash()), "config of 'mine' has a field 'steps', which is the n"),
        ("name in level replay", call(*LEARNS, PlrConfig()), "has a field 'rank_temperature', which is th"),
        ("unknown reward", call(*LEARNS, Settings(), reward="curious"), "reward is 'curious'; accepted: game, knn, or"),
        ("reward's class", call(*LEARNS, Settings(), reward=Ones), "reward is <class .*; accepted: game, knn"),
        ("unknown detail", call(*LEARNS, Settings(), memory="gru"), "detail of an algorithm is 'memory'; accepted: re"),
        ("dict as network", call(*LEARNS, Settings(), network={}), "network of 'mine' is {}; accepted: a NetworkConfi"),
        ("unknown", lambda: make_config("minimaze", "mine"), "--algo is 'mine'; accepted: ppo, .*--import MODULE regi"),
        ("no such member", lambda: recipe_of("expgen-mine"), "--algo is 'expgen-mine'; accepted: ppo, "),
        ("no such explorer", lambda: recipe_of("expgen+mine"), "explorer of --algo is 'mine'; accepted: ppo, "),
        ("population as explorer", lambda: recipe_of("expgen+expgen"), r"--algo is 'expgen\+expgen'; accepted: ppo"),
        ("plus without ExpGen", lambda: recipe_of("ppo+maxent"), r"--algo is 'ppo\+maxent'; accepted: ppo, "),
        ("members with memory", lambda: recipe_of("expgen-ppo-gru"), "policies of ppo-gru have memory; accepted: memb"),
    ],
    "reward": [
        ("empty name", call("reward", "", Ones), "name of the reward is ''; accepted: letters"),
        ("name with a colon", call("reward", "a:b", Ones), "name of the reward is 'a:b'; accepted: letters"),
        ("name with a blank", call("reward", "a b", Ones), "name of the reward is 'a b'; accepted: letters"),
        ("name that begins with a dash", call("reward", "-a", Ones), "name of the reward is '-a'; accepted: letters"),
        ("name of another type", call("reward", None, Ones), "name of the reward is None; accepted: letters"),
        ("an algorithm's name", call("reward", "maxent", Ones), "name of the reward is 'maxent', which is taken"),
        ("number", call("reward", "mine", 1.0), "reward 'mine' is 1.0; accepted: a class or function"),
        ("list", call("reward", "mine", [Ones]), "reward 'mine' is .*; accepted: a class or function"),
        ("made already", call("reward", "mine", torch.zeros(2)), "reward 'mine' is .*; accepted: a class or function"),
        ("config's class", call("reward", "mine", Ones, Settings), "config of 'mine' is <class .*; accepted: an ins"),
        ("number as config", call("reward", "mine", Ones, 3), "config of 'mine' is 3; accepted: an instance of a d"),
        ("text as config", call("reward", "mine", Ones, "x"), "config of 'mine' is 'x'; accepted: an instance"),
        ("dict as config", call("reward", "mine", Ones, {}), "config of 'mine' is {}; accepted: an instance"),
        ("name of PPO's setting", call("reward", "mine", Ones, Without()), "has a field 'gamma', which is the name"),
        ("name of the run's setting", call("reward", "mine", Ones, Clash()), "has a field '(gamma|steps)', which is"),
        ("detail of algorithms", call("reward", "mine", Ones, reward="game"), "detail of a reward is 'reward'; accept"),
        ("unknown detail", call("reward", "mine", Ones, scale=3), "detail of a reward is 'scale'; accepted: network, "),
        ("decorated number", lambda: register("reward", "mine")(3), "reward 'mine' is 3; accepted: a class"),
        ("unknown setting", lambda: make_config(algo="maxent", rnd_rate=1), "setting 'rnd_rate' is unknown to --algo "),
        ("unknown", lambda: recipe_of("expgen-ppo+mine"), "explorer of --algo is 'mine'; accepted: ppo, "),
    ],
    "encoder": [
        ("empty name", call("encoder", "", Flat), "name of the encoder is ''; accepted: letters"),
        ("name of another type", call("encoder", Flat, Flat), "name of the encoder is <class .*; accepted: letters"),
        ("name with a comma", call("encoder", "a,b", Flat), "name of the encoder is 'a,b'; accepted: letters"),
        ("built-in name", call("encoder", "impala", Flat), "name of the encoder is 'impala', which is taken"),
        ("auto", call("encoder", "auto", Flat), "name of the encoder is 'auto', which is taken"),
        ("number", call("encoder", "mine", 3), "encoder 'mine' is 3; accepted: a class or function"),
        ("text", call("encoder", "mine", "Flat"), "encoder 'mine' is 'Flat'; accepted: a class or function"),
        ("with settings", call("encoder", "mine", Flat, Settings()), "'mine' has config; accepted: only for algo"),
        ("with details", call("encoder", "mine", Flat, width=3), "'mine' has width; accepted: only for algo"),
        ("unknown", lambda: NetworkConfig(encoder="mine"), "--encoder is 'mine'; accepted: auto, impala, .* --import"),
        ("unknown to a run", lambda: make_config(encoder="mine"), "--encoder is 'mine'; accepted: auto"),
        ("of another type", lambda: make_config(encoder=3), "--encoder is 3; accepted: auto"),
        ("a class for a name", lambda: make_config(encoder=Flat), "--encoder is <class .*; accepted: text"),
        ("a list for a name", lambda: make_config(encoder=["conv"]), r"--encoder is \['conv'\]; accepted: text"),
        ("other features", with_encoder(Wrong), r"maps 2 observations to \(2, 7\); accepted: \(2, 8\), as --features"),
        ("fails", with_encoder(Failing), r"'mine', which fails on observations \(11, 11, 3\): AttributeError: .*no_su"),
        ("takes nothing", with_encoder(lambda: None), "'mine', which fails on observations .*TypeError: .*arguments"),
        ("makes nothing", with_encoder(lambda shape, features: None), "'mine', which fails on observations .*Error"),
        ("makes numbers", with_encoder(lambda shape, features: 3), "'mine', which fails on observations .*Error"),
        ("with a width", with_encoder(Flat, width=2), "--width is 2 but the encoder is mine; accepted: 1, or impala"),
    ],
    "agent": [
        ("empty name", call("agent", "", Still), "name of the agent is ''; accepted: letters"),
        ("name of another type", call("agent", 1, Still), "name of the agent is 1; accepted: letters"),
        ("name with a slash", call("agent", "maze/mine", Still), "name of the agent is 'maze/mine'; accepted: letters"),
        ("number", call("agent", "mine", 3), "agent 'mine' is 3; accepted: a class or function"),
        ("made already", call("agent", "mine", Still({}, MAZE, 0)), "agent 'mine' is .*Still.*; accepted: a class or "),
        ("with settings", call("agent", "mine", Still, Settings()), "'mine' has config; accepted: only for algo"),
        ("with details", call("agent", "mine", Still, alpha=0.5), "'mine' has alpha; accepted: only for algo"),
        ("learner's name", call("agent", "member0", Still), "name of the agent is 'member0', which is reserved for"),
        ("explorer's name", call("agent", "explorer", Still), "name of the agent is 'explorer', which is reserved for"),
        ("name of all learners", call("agent", "each", Still), "name of the agent is 'each', which is reserved for"),
        ("takes nothing", call("agent", "mine", lambda: None), r"agent 'mine' has parameters \(\); accepted: \(pol"),
        ("takes two", call("agent", "mine", lambda p, s: None), r"agent 'mine' has parameters \(p, s\); accepted: \(p"),
        ("takes four", call("agent", "mine", lambda p, s, n, x: None), "agent 'mine' has parameters .*; accepted: .p"),
        ("env with settings", call("env", "mine", Still, Settings()), "'mine' has config; accepted: only for algo"),
        ("env that is reserved", call("env", "maze", Still), "name of the environment is 'maze', which is reserved"),
        ("env that is no factory", call("env", "mine", 3), "env 'mine' is 3; accepted: a class or function"),
    ],
}  # fmt: skip
CASES = [
    pytest.param(make, message, id=f"{kind}-{what}") for kind, rows in WRONG.items() for what, make, message in rows
]


def test_algorithm_that_chooses_levels_may_have_settings_of_level_replay() -> None:
    register("algorithm", "mine", OneStep, PlrConfig(), build_levels=LevelReplay)
    assert make_config(algo="mine", staleness_coef=0.2).algorithm.staleness_coef == 0.2
    with pytest.raises(InputError, match="--level-replay is True but mine chooses its levels itself"):
        make_config(algo="mine", level_replay=True)


@pytest.mark.parametrize(("make", "message"), CASES)
def test_invalid_registration_is_refused_in_one_line(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def agent_with_act(act: Callable[..., Any]) -> Any:
    """Return an agent class with the method `act(self, obs, first, episode)`."""
    return type("Mine", (Still,), {"act": act})


def agent_returning(actions: Callable[[np.ndarray], Any]) -> Any:
    """Return an agent class whose actions are `actions(first)`."""
    return agent_with_act(lambda self, obs, first, episode: actions(first))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda policies, spec, seed: 3, "agent 'still' is 3; accepted: an object with act"),
        (lambda policies, spec, seed: None, "agent 'still' is None; accepted: an object with act"),
        (lambda policies, spec, seed: Still, "agent 'still' is <class .*; accepted: an object with act"),
        (
            lambda policies, spec, seed: policies["explorer"],
            "agent 'still' failed with policies member0: KeyError",
        ),
        (
            agent_with_act(lambda self: 0),
            r"act of agent 'still' has parameters \(\); accepted: \(obs, first, episode\)",
        ),
        (
            agent_with_act(lambda self, obs, first: first),
            r"act of agent 'still' has parameters \(obs, first\); accepted: \(obs, f",
        ),
        (agent_returning(lambda first: None), r"actions have shape \(\), type object; accepted: \d whole n"),
        (
            agent_returning(lambda first: 2),
            r"actions have shape \(\), type int64; accepted: \d whole numbers",
        ),
        (
            agent_returning(lambda first: first * 0.5),
            "actions have .*type float64; accepted: . whole numbers",
        ),
        (
            agent_returning(lambda first: first),
            "actions have shape .*, type bool; accepted: . whole numbers",
        ),
        (
            agent_returning(lambda first: [[0]] * len(first)),
            r"actions have shape \(\d, 1\).*; accepted: \d wh",
        ),
        (agent_returning(lambda first: ["left"] * len(first)), "actions have .*type <U4; accepted: . whole"),
        (agent_returning(lambda first: [99] * len(first)), "actions are 99 to 99; accepted: 0 to 4"),
        (agent_returning(lambda first: [-1] * len(first)), "actions are -1 to -1; accepted: 0 to 4"),
    ],
)
def test_registered_agent_with_invalid_actions_is_refused(
    make: Any, message: str, agent_run: Path, refused: Callable[..., str], tmp_path: Path
) -> None:
    register("agent", "still", make)
    for words in (("evaluate", agent_run, "--episodes", 1), ("play", agent_run, "--out", tmp_path / "film.html")):
        assert re.search(message, refused(*words, "--learner", "still"))


@pytest.fixture(scope="module")
def agent_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one update."""
    folder = tmp_path_factory.mktemp("agent") / "run"
    settings = {"steps": 32, "envs": 2, "rollout_steps": 16, "minibatches": 2, "features": 16, "eval_every": 2048}
    expgen.train("minimaze", run=folder, preset="smoke", device="cpu", quiet=True, levels=5, **settings)
    return folder


def test_evaluate_refuses_unknown_learner(agent_run: Path, refused: Callable[..., str]) -> None:
    register("agent", "still", Still)
    line = refused("evaluate", agent_run, "--episodes", 1, "--learner", "stil")
    assert "--learner is 'stil'; accepted: each, member0, still, or what --import MODULE registers" in line
    line = refused("evaluate", agent_run, "--episodes", 1, "--learner", "still", "--min-agree", 2)
    assert "--min-agree is a setting of ensembles" in line
