"""expgen slurm -- COMMAND: print a Slurm batch script that starts a Ray cluster and runs COMMAND on it."""

import shlex
from collections.abc import Sequence
from importlib import resources

from jinja2 import Template

from expgen.cli.flags import Parser
from expgen.errors import InputError, check_range


def main(argv: Sequence[str]) -> int:
    parser = Parser(
        "slurm",
        usage="expgen slurm [FLAGS] -- reproduce NAME …",
        epilog="Example: expgen slurm --nodes 2 --gpus 4 -- reproduce table-1 --scale paper --out /shared/p | sbatch",
    )
    parser.add("--nodes", "number of nodes", 2)
    parser.add("--gpus", "GPUs per node; 0 for none", 1)
    parser.add("--cpus", "CPU cores per node", 16)
    parser.add("--hours", "time limit in hours; the job is requeued when it is reached", 24)
    at = argv.index("--") if "--" in argv else len(argv)
    arguments, command = parser.parse_args(argv[:at]), argv[at + 1 :]
    if not command or command[0] not in ("reproduce", "train", "evaluate"):
        raise InputError(f"COMMAND is {shlex.join(command)!r}; accepted: -- and then reproduce, train or evaluate …")
    if any(word.partition("=")[0] in ("--engine", "--address") for word in command):
        raise InputError("COMMAND has --engine or --address; accepted: neither, since the script adds them")
    for name, least in (("nodes", 1), ("gpus", 0), ("cpus", 1), ("hours", 1)):
        check_range(f"--{name}", getattr(arguments, name), least)
    text = (resources.files("expgen.cluster") / "slurm.sh").read_text(encoding="utf-8")
    script = Template(text, trim_blocks=True, keep_trailing_newline=True)
    print(script.render(**vars(arguments), command=shlex.join(command)), end="")
    return 0
