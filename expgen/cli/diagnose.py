"""expgen diagnose RUN: measure whether ExpGen helps a run, explain why, suggest changes."""

from collections.abc import Sequence
from pathlib import Path

from expgen.cli.flags import Parser, folder
from expgen.cli.playing_flags import add_agent_argument, add_playing_flags
from expgen.diagnosis.diagnose import check_figure_file, diagnose
from expgen.errors import check_writable
from expgen.runs.progress import EpisodeMeans, Progress
from expgen.runs.shipped import find_agent
from expgen.text import printable
from expgen.training.resources import resolve_device


def main(argv: Sequence[str]) -> int:
    parser = Parser(
        "diagnose",
        description="One member, the whole agent, the explorer and random actions each play --episodes episodes on "
        "training levels and on unseen ones.",
    )
    add_agent_argument(parser)
    add_playing_flags(parser, episodes=100, seed=0, envs=64, device="cpu")
    parser.add("--out", "figure to write, .png or .svg (default GAME-diagnosis.png)", type=folder, metavar="FILE")
    arguments = vars(parser.parse_args(argv))
    out = arguments.pop("out")
    if out is not None:
        check_figure_file(out)
    resolve_device(arguments["device"])
    game = find_agent(arguments["run"]).agent.game
    file = out or Path(f"{game.replace('/', '-')}-diagnosis.png")
    check_writable(file)
    with Progress("episode") as progress:
        so_far = EpisodeMeans("everyone", progress.row)
        diagnosis = diagnose(**arguments, on_start=lambda episodes: progress.start(episodes, {}), on_episode=so_far)
    for line in str(diagnosis).splitlines():
        print(printable(line))
    diagnosis.save(file)
    print(f"wrote {file}")
    return 0
