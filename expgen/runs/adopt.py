"""adopted.json: which of a run's policies were trained elsewhere, so that its learners are known as they are."""

import dataclasses
import json
from typing import NamedTuple

from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.files import JSON_BYTES, read_bytes
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.plan import LearnerPlan, plans_of


class Adopted(NamedTuple):
    """Where a policy comes from, and what of it differs from the place it takes."""

    source: str
    seed: int
    levels: str
    config: str = ""  # digest of the run that trained it so far


def plans_in(folder: RunFolder, config: TrainConfig) -> list[LearnerPlan]:
    """A run's learners as they are: what was adopted keeps its own seed and levels, also where it is trained on."""
    adopted = read_adopted(folder)
    return [
        dataclasses.replace(plan, seed=adopted[plan.name].seed, levels=LevelSet.parse(adopted[plan.name].levels))
        if plan.name in adopted
        else plan
        for plan in plans_of(config)
    ]


def read_adopted(folder: RunFolder) -> dict[str, Adopted]:
    """What was adopted so far, by the place it took."""
    if not folder.adopted_file.exists():
        return {}
    try:
        record = json.loads(read_bytes(folder.adopted_file, JSON_BYTES))
        known = {place: Adopted(**facts) for place, facts in record.items()}
    except (TypeError, ValueError, AttributeError, RecursionError):
        raise InputError(f"{folder.adopted_file} is damaged; accepted: a file that expgen wrote") from None
    present = set(folder.learners())
    return {place: facts for place, facts in known.items() if place in present}
