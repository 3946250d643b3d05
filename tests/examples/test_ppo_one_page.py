"""examples/ppo_one_page.py trains exactly like the Learner: the weights are bit-equal."""

import pytest
import torch

from examples import ppo_one_page
from expgen.fast import accelerate
from expgen.runs.make_config import make_config
from expgen.runs.plan import build_learner, plans_of
from expgen.training.resources import Resources

CPU = Resources(torch.device("cpu"), torch_threads=1, env_threads=1, updates_at_once=1)


def test_one_page_loop_and_learner_give_equal_weights(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The learner runs `--algo ppo --preset laptop` on the same mazes, with autograd instead of the dense path."""
    monkeypatch.setattr(accelerate, "is_dense", lambda policy: False)
    config = make_config(algo="ppo", preset="laptop", options=ppo_one_page.MAZE)
    learner = build_learner(config, plans_of(config)[0], CPU)
    assert learner.algorithm.config == ppo_one_page.CONFIG
    for _ in range(3):
        list(learner.iterate())
    expected = learner.algorithm.policy.state_dict()
    learner.close()
    found = ppo_one_page.train(num_updates=3).state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[-1].startswith("   24,576 steps")
