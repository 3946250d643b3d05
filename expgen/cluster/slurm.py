"""Slurm batch script that starts a Ray cluster and runs a command on it."""

import shlex
from collections.abc import Sequence
from importlib import resources

from jinja2 import Template


def batch_script(nodes: int, gpus: int, cpus: int, hours: int, command: Sequence[str]) -> str:
    """Return a script for `sbatch`, from the template slurm.sh; the job is requeued when its time limit is reached.

    nodes: number of nodes.
    gpus, cpus: GPUs and cores per node.
    hours: time limit of the allocation.
    command: words of the expgen command that runs on the first node.
    """
    text = (resources.files("expgen.cluster") / "slurm.sh").read_text(encoding="utf-8")
    script = Template(text, trim_blocks=True, keep_trailing_newline=True)
    return script.render(nodes=nodes, gpus=gpus, cpus=cpus, hours=hours, command=shlex.join(command))
