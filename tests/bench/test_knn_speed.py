"""benchmarks/knn_speed.py measures a rollout with the current Learner."""

import runpy
from pathlib import Path

from expgen.training.resources import plan_resources

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "knn_speed.py"


def test_knn_speed_measures_a_rollout() -> None:
    rollout_seconds = runpy.run_path(str(SCRIPT))["rollout_seconds"]
    assert rollout_seconds("minimaze", 8, 8, plan_resources("cpu", 1)) > 0
