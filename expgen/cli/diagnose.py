"""expgen diagnose RUN: whether ExpGen helps there, why or why not, and what to change."""

from collections.abc import Sequence
from pathlib import Path

from expgen.cli.flags import Parser, folder, place, whole_number
from expgen.diagnosis.diagnose import check_picture, diagnose
from expgen.errors import check_writable
from expgen.runs.shipped import find_agent
from expgen.runs.watch import SoFar, Watch
from expgen.text import printable
from expgen.training.life import Watcher
from expgen.training.resources import resolve_device


def main(argv: Sequence[str]) -> int:
    """Parse, play, print what was found, write the figure."""
    parser = Parser(
        "diagnose",
        description="Whether ExpGen helps a run on unseen levels, why or why not, and what to change. A member alone, "
        "the whole agent, the explorer and random actions play training and unseen levels.",
    )
    parser.add_argument(
        "run",
        type=place,
        metavar="RUN_OR_AGENT",
        help="a run folder, its URL, an agent.json, or an agent of expgen agents",
    )
    parser.add_argument(
        "--episodes", type=whole_number, default=100, help="episodes of each player on each split (default 100)"
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, help="random seed for choosing levels and sampling actions"
    )
    parser.add_argument("--envs", type=whole_number, default=64, help="environments side by side (default 64)")
    parser.add_argument("--device", default="cpu", help="auto, cpu, cuda or cuda:N (default cpu)")
    parser.add_argument(
        "--out", type=folder, metavar="FILE", help="the figure, .png or .svg (default GAME-diagnosis.png)"
    )
    arguments = vars(parser.parse_args(argv))
    out = arguments.pop("out")
    if out is not None:
        check_picture(out)
    resolve_device(arguments["device"])
    game = find_agent(arguments["run"]).agent.game
    file = out or Path(f"{game.replace('/', '-')}-diagnosis.png")
    check_writable(file)  # before minutes of play
    watch = Watch("episode")
    try:
        so_far = SoFar("everyone", Watcher(on_row=watch.row))
        diagnosis = diagnose(**arguments, on_start=lambda episodes: watch.start(episodes, {}), on_episode=so_far)
    finally:
        watch.close()
    for line in str(diagnosis).splitlines():
        print(printable(line))
    diagnosis.save(file)
    print(f"wrote {file}")
    return 0
