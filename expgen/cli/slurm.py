"""expgen slurm -- COMMAND: a batch script that starts a Ray cluster inside an allocation and runs COMMAND on it."""

import shlex
from collections.abc import Sequence

from expgen.cli.flags import Parser, whole_number
from expgen.cluster.slurm import batch_script
from expgen.errors import InputError, check_range


def main(argv: Sequence[str]) -> int:
    """Parse and print."""
    parser = Parser(
        "slurm",
        usage="expgen slurm [FLAGS] -- reproduce NAME …",
        description="Print a batch script for sbatch: Ray on every node of the allocation, then the command.",
        epilog="expgen slurm --nodes 2 --gpus 4 -- reproduce table-1 --scale paper --out /shared/paper | sbatch",
    )
    parser.add_argument("--nodes", type=whole_number, default=2, help="number of nodes (default 2)")
    parser.add_argument("--gpus", type=whole_number, default=1, help="GPUs per node (default 1; 0 for none)")
    parser.add_argument("--cpus", type=whole_number, default=16, help="cores per node (default 16)")
    parser.add_argument(
        "--hours",
        type=whole_number,
        default=24,
        help="time limit; the batch is requeued when it is reached (default 24)",
    )
    own, command = _split(list(argv))
    arguments = parser.parse_args(own)
    if not command or command[0] not in ("reproduce", "train", "evaluate"):
        raise InputError(f"COMMAND is {shlex.join(command)!r}; accepted: -- and then reproduce, train or evaluate …")
    if any(word.partition("=")[0] in ("--engine", "--address") for word in command):
        raise InputError("COMMAND names --engine or --address; accepted: neither, for the script adds them")
    for name, least in (("nodes", 1), ("gpus", 0), ("cpus", 1), ("hours", 1)):
        check_range(f"--{name}", getattr(arguments, name), least)
    print(batch_script(**vars(arguments), command=command), end="")
    return 0


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]
