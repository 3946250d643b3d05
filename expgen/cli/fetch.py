"""expgen fetch URL DIR: download a run or reproduction from a URL."""

from collections.abc import Sequence

from expgen.cli.flags import Parser, folder, location
from expgen.errors import InputError
from expgen.storage.location import is_url
from expgen.storage.view import fetch


def main(argv: Sequence[str]) -> int:
    parser = Parser("fetch", epilog="Run it again to update DIR. Other files in DIR are kept.")
    parser.add("url", "the --run or --out of an earlier command", type=location, metavar="URL")
    parser.add("folder", "folder to write to", type=folder, metavar="DIR")
    arguments = parser.parse_args(argv)
    if not is_url(arguments.url):
        raise InputError(f"URL is {str(arguments.url)!r}; accepted: a URL as s3://BUCKET/RUN")
    count = fetch(arguments.url, arguments.folder)
    if not count:
        raise InputError(f"{arguments.url} has no files that expgen wrote; accepted: a --run or --out of expgen")
    print(f"done: {count} files in {arguments.folder}")
    return 0
