"""python -m tests.cluster.tiny OUT [ADDRESS]: a reproduction of a few seconds, local or on a cluster."""

import dataclasses
import sys
from pathlib import Path

from expgen.cluster.engine import TaskResources, make_engine
from expgen.reproduce.reproduce import reproduce
from expgen.reproduce.scale import SCALES
from expgen.runs.stop import StopSignals
from expgen.storage.location import is_url
from expgen.training.loop import Watcher

TINY = dataclasses.replace(
    SCALES["smoke"], steps=1024, explorer_steps=1024, runs=1, episodes=2, resamples=10, members=2
)
NAMES = ["table-5"]  # members and explorer, then the agent of both


def main(out: str, address: str | None = None) -> int:
    engine = make_engine("ray", address, TaskResources(cpus=1)) if address else make_engine("local")
    with StopSignals() as signals:
        watcher = Watcher(should_stop=signals.arrived)
        place = out if is_url(out) else Path(out)
        page, complaints = reproduce(NAMES, TINY, place, engine, device="cpu", watcher=watcher)
    print(*complaints, sep="\n")
    return 0 if page is not None and not complaints else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
