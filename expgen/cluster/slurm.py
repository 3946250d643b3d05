"""A Ray cluster inside a Slurm allocation, as the batch script that starts it."""

import shlex
from collections.abc import Sequence
from importlib import resources

GRACE_SECONDS = 300  # between SIGTERM and the end of the allocation


def batch_script(nodes: int, gpus: int, cpus: int, hours: int, command: Sequence[str]) -> str:
    """For `sbatch`: a head and its workers, `command` on the head, and another try where time ran out.

    `gpus` and `cpus` are those of each of the `nodes`; `hours` limit the allocation. What the script does is in
    slurm.sh: its `start` and `words` are set here.
    """
    asked = {
        "job-name": "expgen",
        "nodes": nodes,
        "ntasks-per-node": 1,
        "cpus-per-task": cpus,
        "gpus-per-node": gpus or None,
        "time": f"{hours}:00:00",
        "signal": f"B:TERM@{GRACE_SECONDS}",
    }
    lines = [f"#SBATCH --{name}={value}" for name, value in asked.items() if value is not None]
    start = f"start=(ray start --num-cpus={cpus} --num-gpus={gpus} --block)"
    words = f"words=({shlex.join([*command, '--engine', 'ray'])})"
    body = (resources.files("expgen.cluster") / "slurm.sh").read_text(encoding="utf-8")
    return "\n".join(["#!/usr/bin/env bash", *lines, body.replace("# start and words", f"{start}\n{words}")])
