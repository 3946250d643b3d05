"""One episode as plain data, played in front of a stage. All that shows an episode is made of a Recording alone."""

from typing import NamedTuple

import numpy as np

from expgen.agents.agent import Agent
from expgen.agents.consensus import ConsensusAgent
from expgen.envs.vec_env import HasActionNames, LevelControl, checked_actions
from expgen.watch.actions import ActionRows, action_rows
from expgen.watch.film import Film
from expgen.watch.reasons import Cast, Reason, cast_of, reason_of
from expgen.watch.stage import LevelMap, Stage, as_picture


class Step(NamedTuple):
    """One step: what was done, why, and what came of it."""

    action: int
    reason: Reason
    reward: float
    place: tuple[int, int] | None  # row and column of the cell it was taken from; None where nobody can tell


class Recording(NamedTuple):
    """One episode. Frame t is what was seen when step t was decided; what a last step leads to is never seen."""

    env: str
    level: int | None  # None where the environment has no levels to name
    split: str  # "train", "test", or "" where nobody said
    agent: str
    seed: int
    solved: bool
    actions: ActionRows
    cast: Cast
    steps: tuple[Step, ...]
    film: Film  # [T] the level, large
    seen: Film  # [T] what the agent sees
    level_map: LevelMap | None

    @property
    def episode_return(self) -> float:
        """What the game paid."""
        return sum(step.reward for step in self.steps)


def record_episode(
    agent: Agent, stage: Stage, name: str, seed: int = 0, split: str = "", level: int | None = None, episode: int = 0
) -> Recording:
    """The episode that `evaluate` would play as its number `episode` on the same level.

    `name` and `seed` are those of the agent, shown to whoever watches. `level` starts one level, where the environment
    can; else the stage's next one is played. The environment is left at the start of another episode.
    """
    env = stage.env
    if isinstance(agent, ConsensusAgent):
        agent.ask_everyone()
    observation = env.observe()
    if level is not None and isinstance(env, LevelControl):
        env.play(0, level)
        observation = env.observe()
    if not observation.first[0]:
        raise ValueError("the stage is in the middle of an episode; accepted: one that begins")
    played = int(observation.level[0])
    level_map, film, seen, steps = stage.level_map(), Film(), Film(), list[Step]()
    while True:
        film.append(stage.picture())
        seen.append(as_picture(observation.obs[0]))
        place = stage.place()
        chosen = agent.act(observation.obs, observation.first, np.array([episode]))
        action = checked_actions(chosen, 1, env.spec.num_actions)
        reason = reason_of(agent)
        env.act(action)
        observation = env.observe()
        steps.append(Step(int(action[0]), reason, float(observation.reward[0]), place))
        if observation.first[0]:
            break
    by_action = isinstance(agent, ConsensusAgent) and agent.config.agreement == "action"
    return Recording(
        env=env.spec.name,
        level=played if played >= 0 else None,
        split=split,
        agent=name,
        seed=seed,
        solved=bool(observation.solved[0]),
        actions=action_rows(env.spec, by_action, env.action_names() if isinstance(env, HasActionNames) else ()),
        cast=cast_of(agent),
        steps=tuple(steps),
        film=film,
        seen=seen,
        level_map=level_map,
    )
