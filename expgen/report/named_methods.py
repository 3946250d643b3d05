"""methods.csv: names for variants of a method, so that settings that differ by game share a column of the report.

The file is in the folder of a scores.csv and has the columns of NamedVariant. Each line selects score rows of one game;
the report counts these rows for the named method as well as for their own.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from expgen.errors import InputError
from expgen.evaluation.scores import TableFile
from expgen.report.methods import LABELS, Method

METHODS_FILE = "methods.csv"


@dataclass(frozen=True)
class NamedVariant:
    """One line: score rows of `game` with this algorithm and these settings belong to the method `method`."""

    method: str
    game: str
    algorithm: str
    settings: str  # as in scores.csv, in any order


def read_method_names(file: Path, scored: Sequence[tuple[str, Method]]) -> Mapping[tuple[str, Method], list[str]]:
    """Return the names of each game and method in `file`; none if it does not exist.

    Raise InputError for a name that is an algorithm's, or a line that describes none of the `scored` games and methods.
    """
    names: defaultdict[tuple[str, Method], list[str]] = defaultdict(list)
    for line, variant in TableFile(NamedVariant, "method").numbered(file) if file.exists() else ():
        if variant.method in LABELS or not variant.method.strip():
            raise InputError(
                f"{file} line {line}: method is {variant.method!r}; accepted: a name that is not an algorithm's"
            )
        key = variant.game, Method.of_row(variant.algorithm, variant.settings)
        if key not in scored:
            raise InputError(f"{file} line {line} matches no score row: {variant.game}, {key[1].label}")
        names[key].append(variant.method)
    return names
