"""expgen fetch URL DIR: a run or a whole reproduction that is kept at a URL, as plain files."""

from collections.abc import Sequence

from expgen.cli.flags import Parser, folder, location
from expgen.errors import InputError
from expgen.storage.location import is_url
from expgen.storage.view import fetch


def main(argv: Sequence[str]) -> int:
    """Parse, copy, say how much."""
    parser = Parser(
        "fetch",
        description="Bring what --run or --out keeps at a URL here: configs, curves, checkpoints, scores, the report.",
        epilog="Repeated, it brings the folder up to date. Files in DIR that are not at the URL are left alone.",
    )
    parser.add("url", "the URL that was given to --run or --out", type=location, metavar="URL")
    parser.add("folder", "folder to write to", type=folder, metavar="DIR")
    arguments = parser.parse_args(argv)
    if not is_url(arguments.url):
        raise InputError(f"URL is {str(arguments.url)!r}; accepted: a URL as s3://BUCKET/RUN")
    count = fetch(arguments.url, arguments.folder)
    if not count:
        raise InputError(f"{arguments.url} holds nothing that expgen wrote; accepted: a --run or --out of expgen")
    print(f"done: {count} files in {arguments.folder}")
    return 0
