"""PLR: the authors' settings, in the order of earlier configs."""

from dataclasses import fields

from expgen.algorithms.plr import PlrConfig
from expgen.algorithms.ppo import PPOConfig
from expgen.rollout.level_replay import ReplayConfig


def test_plr_defaults_are_the_authors():
    c = PlrConfig()
    assert (c.rank_temperature, c.staleness_coef, c.replay_threshold) == (0.1, 0.1, 1.0)
    assert (c.epochs, c.minibatches, c.minibatch_order, c.advantage_epsilon) == (3, 8, "shuffled", 1e-5)


def test_plr_has_the_settings_of_ppo_then_those_of_level_replay():
    names = [field.name for field in fields(PlrConfig)]
    assert names == [field.name for field in (*fields(PPOConfig), *fields(ReplayConfig))]
