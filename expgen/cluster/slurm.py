"""A Ray cluster inside a Slurm allocation, as the batch script that starts it."""

import shlex
from collections.abc import Sequence
from importlib import resources

from jinja2 import Template


def batch_script(nodes: int, gpus: int, cpus: int, hours: int, command: Sequence[str]) -> str:
    """For `sbatch`: a head and its workers, `command` on the head, and another try where time ran out.

    `gpus` and `cpus` are those of each of the `nodes`; `hours` limit the allocation. What the script does is in
    slurm.sh, a template.
    """
    text = (resources.files("expgen.cluster") / "slurm.sh").read_text(encoding="utf-8")
    script = Template(text, trim_blocks=True, keep_trailing_newline=True)
    return script.render(nodes=nodes, gpus=gpus, cpus=cpus, hours=hours, command=shlex.join(command))
