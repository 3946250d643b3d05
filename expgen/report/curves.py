"""Curve: one learner's returns during training, of training episodes and of evaluations, from metrics.csv."""

import csv
import io
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from expgen.errors import InputError
from expgen.files import UnreadableFile, read_bytes

RETURN = "episode_return"  # mean over recent training episodes, played while the weights changed
SCORED = ("train_return", "test_return", "average_train_return", "average_test_return")  # columns of evaluations
MEMBERS_OF = {"expgen": "ppo", "expgen-idaac": "idaac"}  # the algorithm of a population's members


class Curve(NamedTuple):
    """Mean return against steps, of training episodes and of evaluations during training."""

    method: str  # an algorithm, or the METHOD of a published file GAME-METHOD.csv
    game: str
    learner: str  # which run, seed or member
    points: ndarray  # [points, 2]: environment steps and mean return
    scored: Mapping[str, ndarray]  # by column of SCORED: [points, 2]


def read_curves(file: Path, game: str, method_of: Mapping[str, str], default: str, run: str = "") -> Iterator[Curve]:
    """Read the curves in a file with columns `learner` (or `seed`), `env_steps`, `episode_return` and some of SCORED.

    method_of: the method of a learner by its name; `default` is that of all others. run: prefix of the learners' names,
    which distinguishes runs.
    """
    points: dict[str, dict[str, list[tuple[float, float]]]] = {}
    try:
        for row in csv.DictReader(io.StringIO(read_bytes(file).decode(), newline="")):
            learner = row.get("learner") or row.get("seed")
            steps = float(row.get("env_steps") or "nan")
            for column in (RETURN, *SCORED):
                value = float(row.get(column) or "nan")
                if learner and math.isfinite(steps) and math.isfinite(value):
                    points.setdefault(learner, {}).setdefault(column, []).append((steps, value))
    except UnreadableFile:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"cannot read the curves in {file}: {error}") from None
    for learner, columns in points.items():
        sorted_points = {column: np.array(sorted(values)) for column, values in columns.items()}
        trained = sorted_points.pop(RETURN, np.empty((0, 2)))
        yield Curve(method_of.get(learner, default), game, f"{run}{learner}", trained, sorted_points)


def published_curves(scores: Path) -> Iterator[Curve]:
    """Read the curves in `curves/GAME-METHOD.csv`, in the folder of a file called scores.csv."""
    for file in sorted((scores.parent / "curves").glob("*-*.csv")) if scores.name == "scores.csv" else ():
        game, _, method = file.stem.partition("-")
        yield from read_curves(file, game, {"explorer": "maxent"}, MEMBERS_OF.get(method, method))
