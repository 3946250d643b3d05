"""The expgen command: find the verb's module, run it, turn errors into exit statuses."""

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Sequence

from expgen.errors import FailedStorage, InputError, error_line
from expgen.provenance import version
from expgen.runs.stop import StopSignals
from expgen.text import printable

VERBS = {
    "train": "train one or more policies on a set of levels",
    "evaluate": "evaluate a run or agent on its training levels or on unseen ones",
    "tune": "choose quorum, alpha and temperature on levels that the players did not train on",
    "diagnose": "measure whether ExpGen helps a run on unseen levels, explain why, suggest changes",
    "play": "record one episode as an interactive page, .gif or .mp4",
    "report": "write a page of tables, statistics and figures from score files, beside the paper's numbers",
    "reproduce": "train, evaluate and report the paper's tables and figures by name",
    "status": "show the state, progress and remaining time of runs, read from their folders",
    "push": "upload an agent to the Hugging Face Hub, or copy it to a folder, for others to use",
    "fetch": "download a run or reproduction from a URL, or the weights of a shipped agent",
    "slurm": "print a Slurm batch script that starts a Ray cluster and runs a command on it",
    "agents": "list the bundled agents, their scores and how they were trained",
    "bench": "measure the speed of environment, rollout, update and training on this machine",
}
DONE, FAILED, BAD_INPUT = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb; return 0 when done, 1 after a failure, 2 for bad input, 128 + N after signal N."""
    _open_closed_streams()
    given = list(sys.argv[1:] if argv is None else argv)
    words = [word for word in given if word != "--debug"]
    debug = words != given
    signals = StopSignals("exit")
    try:
        with signals:
            status = _run(words, signals)
            sys.stdout.flush()  # a closed pipe raises here instead of at the exit of Python
            return status
    except InputError as error:
        if debug:
            raise
        print(f"expgen: {printable(' '.join(str(error).split()))}", file=sys.stderr)
        return FAILED if isinstance(error, FailedStorage) else BAD_INPUT
    except KeyboardInterrupt:
        print("expgen: interrupted", file=sys.stderr)
        return 128 + (signals.number or signal.SIGINT)
    except BrokenPipeError:
        with contextlib.suppress(OSError):  # Python flushes stdout again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if debug:
            raise
        if isinstance(error, PermissionError) and error.filename:
            denied = f"cannot access {error.filename}: {error.strerror}; accepted: files and folders with permission"
            print(f"expgen: {printable(denied)}", file=sys.stderr)
            return BAD_INPUT
        print(f"expgen: failed: {printable(error_line(error))} (--debug shows where)", file=sys.stderr)
        return FAILED


def _open_closed_streams() -> None:
    """Open /dev/null for standard streams that are closed, as some schedulers start programs without them.

    Else Python has no `sys.stderr` to print to, and the next files that are opened get the streams' numbers.
    """
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(handle, True)  # for worker processes
    os.close(handle)
    for handle, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(handle, "w", closefd=False))


def _run(words: Sequence[str], signals: StopSignals) -> int:
    """Print the usage or the version, or run a verb; return the exit status."""
    if not words or words[0] in ("-h", "--help"):
        print(_usage())
        return DONE
    if words[0] == "--version":
        print(f"expgen {version()}")
        return DONE
    if words[0] not in VERBS:
        raise InputError(f"verb is {words[0]!r}; accepted: {', '.join(VERBS)}")
    verb = importlib.import_module(f"expgen.cli.{words[0]}")
    rest = _import_user_modules(words[1:])
    signals.reaction = "unwind"
    return int(verb.main(rest))


def _import_user_modules(words: Sequence[str]) -> Sequence[str]:
    """Import the modules of `--import MODULE`, which every verb accepts; return the other words."""
    if not any(word.startswith("--import") for word in words):
        return words
    from expgen.cli.flags import Parser
    from expgen.plugins import import_module

    parser = Parser("VERB", add_help=False)
    parser.add_argument("--import", action="append", default=[], dest="modules")
    known, rest = parser.parse_known_args(words)
    for module in known.modules:
        import_module(module)
    return rest


def _usage() -> str:
    verbs = "\n".join(f"  expgen {verb:<9} {summary}" for verb, summary in VERBS.items())
    common = (
        "Every verb accepts --import MODULE (or FILE.py), a module that registers environments, algorithms and more,\n"
        "and --debug, which shows the traceback of an error. expgen VERB --help lists the flags of a verb."
    )
    return f"Train and evaluate agents that play levels they have never seen.\n\n{verbs}\n\n{common}"


if __name__ == "__main__":
    sys.exit(main())
