"""expgen fetch: download a run or reproduction from a URL, or the weights of a shipped agent."""

from collections.abc import Sequence

from expgen.cli.flags import Parser, folder, location
from expgen.errors import InputError
from expgen.runs.fetch_agent import fetch_agent
from expgen.runs.shipped import bundled_agents
from expgen.storage.location import is_url
from expgen.storage.view import fetch


def main(argv: Sequence[str]) -> int:
    parser = Parser(
        "fetch",
        usage="expgen fetch URL DIR\n       expgen fetch NAME --from SOURCE",
        epilog="Run it again to update DIR. Other files in DIR are kept.",
    )
    what = "the --run or --out of an earlier command; or the name of a shipped agent, as expgen agents lists it"
    parser.add("what", what, type=location, metavar="URL or NAME")
    parser.add("folder", "folder to write to, with a URL", type=folder, metavar="DIR", nargs="?")
    source = "with a NAME: folder or URL to get its weights from, such as expgen/pretrained of a clone"
    parser.add("--from", source, type=location, metavar="SOURCE", dest="source")
    arguments = parser.parse_args(argv)
    if arguments.source is not None:
        if arguments.folder is not None or is_url(arguments.what):
            raise InputError("--from is for the name of a shipped agent; accepted: expgen fetch NAME --from SOURCE")
        print(f"done: {fetch_agent(str(arguments.what), arguments.source).path}")
        return 0
    if str(arguments.what) in bundled_agents():
        raise InputError(f"--from is missing; accepted: expgen fetch {arguments.what} --from SOURCE")
    if not is_url(arguments.what):
        raise InputError(f"URL is {str(arguments.what)!r}; accepted: a URL as s3://BUCKET/RUN, or NAME --from SOURCE")
    if arguments.folder is None:
        raise InputError("DIR is missing; accepted: expgen fetch URL DIR")
    count = fetch(arguments.what, arguments.folder)
    if not count:
        raise InputError(f"{arguments.what} has no files that expgen wrote; accepted: a --run or --out of expgen")
    print(f"done: {count} files in {arguments.folder}")
    return 0
