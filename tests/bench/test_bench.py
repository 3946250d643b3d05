"""bench yields all throughput figures in order."""

from typing import Any

import pytest

from expgen.bench.bench import bench
from expgen.bench.speed import COLUMNS
from expgen.runs.make_config import make_config


@pytest.mark.parametrize("algo", ["ppo", "expgen"])
def test_bench_measures_every_figure(small: Any, algo: str) -> None:
    settings = {name: value for name, value in small.settings.items() if name not in ("preset", "device")}
    config = make_config(algo=algo, preset="smoke", **settings)
    words: list[str] = []
    rows = list(bench(config, [1, 2], seconds=0.05, device="cpu", say=words.append))
    assert [(row.what, row.learners) for row in rows] == [
        ("environment", 1),
        ("rollout", 1),
        ("update", 1),
        ("training", 1),
        ("training", 2),
        ("arithmetic alone", 1),
        ("update's arithmetic alone", 1),
        ("forward of 32", 1),
        ("forward of 320", 1),
        ("forward of 4096", 1),
    ]
    assert all(row.steps_per_s > 0 and row.game == "minimaze" and row.hardware.startswith("CPU with") for row in rows)
    assert tuple(vars(rows[0])) == COLUMNS
    known = {row.what: row.steps_per_s for row in rows}
    assert [line.split(":")[0] for line in words[:3]] == ["time of one learner", "training, learners 1", "  bottleneck"]
    assert known["update's arithmetic alone"] > known["arithmetic alone"]  # it leaves out acting
