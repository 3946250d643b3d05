"""A damaged metrics.csv never stops a run: what is damaged is set aside, the good rows stay, and a line says so."""

import itertools
import os
import sys
from pathlib import Path

from expgen.errors import unwritable
from expgen.files import write_whole
from expgen.training.metrics import HEADER_BYTES, MetricsFile, cells_of, row_of


def repair_metrics(path: Path) -> None:
    """Make the metrics file `path` one that a process can continue; if it is damaged it is kept as `path`.damaged-N.

    A last line without an end is not damage: a process that is killed leaves one.
    """
    names = (path.with_name(f"{path.name}.damaged-{number}") for number in itertools.count(1))
    aside = next(name for name in names if not os.path.lexists(name))
    try:
        damage = _damage(path)
        if damage and path.is_file():
            metrics = MetricsFile(path)
            write_whole(aside, path.read_bytes())
            metrics.rewrite(metrics.rows())
        elif damage:
            os.replace(path, aside)
    except OSError as error:
        damage = str(error.strerror)
        try:
            os.replace(path, aside)
        except OSError as refused:
            raise unwritable(path, refused) from None
    if damage:
        line = f"expgen: {path}: {damage}; the damaged file is now {aside.name}, training continues without that part"
        print(line, file=sys.stderr, flush=True)


def _damage(path: Path) -> str:
    """What is wrong with the file, in words; empty if nothing is."""
    if not path.is_file():
        return "not a regular file" if os.path.lexists(path) else ""
    metrics = MetricsFile(path)
    header, *others = metrics.lines() or [b""]
    if not path.stat().st_size:
        return ""
    if len(header) >= HEADER_BYTES or cells_of(header) != metrics.columns:
        return "no header"
    num_bad = sum(row_of(metrics.columns, line) is None for line in others)
    return f"{num_bad} damaged lines" if num_bad else ""
