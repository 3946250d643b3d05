"""expgen play RUN --level N: record one episode."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from expgen.cli.flags import Parser, folder, whole_number
from expgen.cli.playing_flags import add_agent_argument, add_ensemble_flags, add_playing_flags, request_of
from expgen.errors import check_range
from expgen.evaluation.scores import SPLITS
from expgen.runs.shipped import find_agent
from expgen.text import printable
from expgen.watch.play import RANDOM, WALL_FOLLOWER, PlayRequest, play_agent
from expgen.watch.record import Recording
from expgen.watch.write import check_out, write_recording


def main(argv: Sequence[str]) -> int:
    parser = Parser("play")
    add_agent_argument(parser)
    parser.add("--level", "seed of the level (default: a random level of --split)", type=whole_number)
    parser.add("--split", "play a training level (train) or an unseen one (test) (default test)", choices=SPLITS)
    parser.add("--out", "file to write: .html, .gif or .mp4 (default GAME-levelN.html)", type=folder, metavar="FILE")
    players = f"member0, …, explorer, {RANDOM} or {WALL_FOLLOWER}"
    parser.add("--learner", f"policy that plays: {players} (default: the ensemble, else member0)")
    parser.add("--fps", "steps per second of a .gif or .mp4", 8)
    add_playing_flags(parser, seed=0, device="cpu")
    add_ensemble_flags(parser)
    arguments = vars(parser.parse_args(argv))
    run = arguments.pop("run")
    found = find_agent(run)
    out, fps = arguments.pop("out"), arguments.pop("fps")
    check_range("--fps", fps, 1, 60)
    check_out(out or Path(_default_name(found.agent.env, None)))
    arguments["name"] = str(run) if found.is_bundled and arguments["learner"] is None else ""
    arguments["learner"] = found.learner if arguments["learner"] is None else arguments["learner"]
    recording = play_agent(found.agent, request_of(PlayRequest, arguments))
    path = out or Path(_default_name(recording.env, recording.level))
    write_recording(recording, path, fps)
    size = path.stat().st_size
    shown = f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"
    print(f"{printable(_describe(recording))}\nwrote {path} ({shown})")
    return 0


def _default_name(env: str, level: int | None) -> str:
    game = env.partition(":")[2] or env
    return f"{game}{'' if level is None else f'-level{level}'}.html".replace("/", "-")


def _describe(recording: Recording) -> str:
    steps = len(recording.steps)
    shares = Counter(step.reason.who for step in recording.steps).most_common()
    acted = ", ".join(f"{who} {count / steps:.0%}" for who, count in shares)
    outcome = "solved" if recording.solved else "not solved"
    level = "" if recording.level is None else f" level {recording.level}"
    return (
        f"{recording.agent} on {recording.env}{level} ({recording.split}): {outcome} in {steps} steps, "
        f"return {recording.episode_return:g}; acted: {acted}"
    )
