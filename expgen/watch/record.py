"""Recording of one episode as plain data, from which the inspector, videos and captions are made."""

from typing import NamedTuple

import numpy as np

from expgen.agents.agent import Agent
from expgen.agents.consensus import ConsensusAgent
from expgen.envs.vec_env import HasActionNames, LevelControl, checked_actions
from expgen.watch.actions import ActionRows, action_rows
from expgen.watch.film import Film
from expgen.watch.reasons import EnsembleInfo, Reason, ensemble_info, reason_of
from expgen.watch.stage import LevelMap, Stage, as_picture


class Step(NamedTuple):
    """One step: the action, its reason and its result."""

    action: int
    reason: Reason
    reward: float
    position: tuple[int, int] | None  # row and column of the agent before the step; None if unknown


class Recording(NamedTuple):
    """One episode. Frame t is the observation before step t; the frame after the last step is not available."""

    env: str
    level: int | None  # None if the environment has no levels
    split: str  # "train", "test", or "" if unknown
    agent: str
    seed: int
    solved: bool
    actions: ActionRows
    ensemble: EnsembleInfo
    steps: tuple[Step, ...]
    film: Film  # [T] large pictures of the level
    seen: Film  # [T] observations of the agent
    level_map: LevelMap | None

    @property
    def episode_return(self) -> float:
        """The sum of rewards."""
        return sum(step.reward for step in self.steps)


def record_episode(
    agent: Agent, stage: Stage, name: str, seed: int = 0, split: str = "", level: int | None = None, episode: int = 0
) -> Recording:
    """Record the episode that `evaluate` plays as number `episode` on the same level.

    `name` and `seed` describe the agent in the recording. `level` selects the level if the environment has level
    control; otherwise the stage's next level is played. The environment ends at the start of another episode.
    """
    env = stage.env
    if isinstance(agent, ConsensusAgent):
        agent.ask_all_members()
    observation = env.observe()
    if level is not None and isinstance(env, LevelControl):
        env.play(0, level)
        observation = env.observe()
    if not observation.first[0]:
        raise ValueError("the stage is in the middle of an episode; accepted: a stage at the start of an episode")
    played = int(observation.level[0])
    level_map, film, seen, steps = stage.level_map(), Film(), Film(), list[Step]()
    while True:
        film.append(stage.picture())
        seen.append(as_picture(observation.obs[0]))
        position = stage.position()
        chosen = agent.act(observation.obs, observation.first, np.array([episode]))
        action = checked_actions(chosen, 1, env.spec.num_actions)
        reason = reason_of(agent)
        env.act(action)
        observation = env.observe()
        steps.append(Step(int(action[0]), reason, float(observation.reward[0]), position))
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
        ensemble=ensemble_info(agent),
        steps=tuple(steps),
        film=film,
        seen=seen,
        level_map=level_map,
    )
