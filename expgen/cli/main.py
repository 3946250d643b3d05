"""expgen: the command line. One verb, one file; this one finds the verb and turns errors into exit statuses."""

import importlib
import signal
import sys
from collections.abc import Sequence

from expgen.errors import FailedStorage, InputError, error_line
from expgen.runs.stop import StopSignals
from expgen.text import printable

VERBS = {
    "train": "train a policy, or several side by side, on a set of levels",
    "evaluate": "score what a run has learnt, on the levels it trained on or on unseen ones",
    "tune": "pick an ensemble's quorum and alpha on training levels that the voting members never saw",
    "diagnose": "whether ExpGen helps a run on unseen levels, why or why not, and what to change",
    "play": "watch one episode: the inspector (a page), a .gif or an .mp4",
    "report": "score files as one page: tables beside the paper's, statistics, figures",
    "reproduce": "the paper's tables and figures by name: train, score, report",
    "status": "what runs, is done or has failed, and how long is left, from run folders alone",
    "push": "put an agent on the Hugging Face Hub, or into a folder, for others to play",
    "fetch": "bring what was kept at a URL here, as plain files",
    "slurm": "print a batch script that starts a Ray cluster in an allocation and runs a command on it",
    "agents": "list the agents that ship with the package, their scores and where they come from",
    "bench": "measure how fast environment, rollout, update and the whole pipeline run here",
}
DONE, FAILED, BAD_INPUT = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb; 0 done, 1 a failure while running, 2 bad input with one line that says what would be accepted."""
    given = list(sys.argv[1:] if argv is None else argv)
    words = [word for word in given if word != "--debug"]
    debug = words != given
    if not words or words[0] in ("-h", "--help"):
        print(_usage())
        return DONE
    if words[0] == "--version":
        from expgen.provenance import version

        print(f"expgen {version()}")
        return DONE
    signals = StopSignals("exit")
    try:
        with signals:
            if words[0] not in VERBS:
                raise InputError(f"verb is {words[0]!r}; accepted: {', '.join(VERBS)}")
            verb, words = importlib.import_module(f"expgen.cli.{words[0]}"), _import_named(words[1:])
            signals.reaction = "unwind"
            return int(verb.main(words))
    except InputError as error:
        if debug:
            raise
        print(f"expgen: {printable(' '.join(str(error).split()))}", file=sys.stderr)
        return FAILED if isinstance(error, FailedStorage) else BAD_INPUT
    except KeyboardInterrupt:
        print("expgen: interrupted", file=sys.stderr)
        return 128 + (signals.number or signal.SIGINT)
    except BrokenPipeError:
        return FAILED
    except Exception as error:
        if debug:
            raise
        print(f"expgen: failed: {printable(error_line(error))} (--debug shows where)", file=sys.stderr)
        return FAILED


def _import_named(words: list[str]) -> list[str]:
    """`words` without `--import MODULE`, which every verb takes; the modules are imported."""
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
    every = (
        "Every verb takes --import MODULE (or FILE.py), which may register environments, algorithms and more.\n"
        "expgen VERB --help documents all else."
    )
    return f"Agents that play levels they have never seen.\n\n{verbs}\n\n{every}"


if __name__ == "__main__":
    sys.exit(main())
