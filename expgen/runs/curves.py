"""Scores taken while a run trained, from its metrics.csv, as score rows without intervals."""

import itertools
import math

from expgen.evaluation.scores import SPLITS, Score
from expgen.runs.folder import RunFolder
from expgen.runs.plan import plans_of
from expgen.runs.scoring import METRIC_PREFIXES
from expgen.training.metrics import MetricsFile


def curve_rows(folder: RunFolder, commit: str = "") -> list[tuple[int, Score]]:
    """Line of metrics.csv and row, for each learner, scored step and split.

    A run does not keep which code it ran, so only who has just trained it can say `commit`.
    """
    config, _ = folder.read_config()
    plans = {plan.name: plan for plan in plans_of(config)}
    rows = []
    for line, metrics in enumerate(MetricsFile(folder.metrics_file).rows(), start=2):
        plan = plans.get(metrics["learner"])
        for split, (weights, prefix) in itertools.product(SPLITS, METRIC_PREFIXES.items()):
            mean = metrics.get(f"{prefix}{split}_return")
            if plan is None or not mean:
                continue
            row = Score(
                algorithm=plan.algo,
                game=config.game,
                env=config.env,
                seed=plan.seed,
                split=split,
                levels=str(plan.levels if split == "train" else config.test_set),
                env_steps=int(metrics["env_steps"]),
                episodes=config.eval_episodes,
                mean_return=float(mean),
                std_return=math.nan,
                solved_rate=float(metrics.get(f"{prefix}{split}_solved") or math.nan),
                ci_low=math.nan,
                ci_high=math.nan,
                agent=plan.name,
                commit=commit,
                settings="" if weights == "live" else f"weights={weights}",
            )
            rows.append((line, row))
    return rows
