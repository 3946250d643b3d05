"""expgen evaluate RUN: play unseen (or training) levels and append a row to scores.csv."""

from collections.abc import Sequence
from pathlib import Path

from expgen.cli.flags import Parser, whole_number
from expgen.evaluation.scores import Score, append_scores
from expgen.experiments.run_folder import RunFolder
from expgen.experiments.scoring import score_run


def main(argv: Sequence[str]) -> int:
    """Parse, play, print the table."""
    parser = Parser(prog="expgen evaluate", allow_abbrev=False, description="Score what a run has learnt.")
    parser.add_argument("run", metavar="RUN", help="a run folder")
    parser.add_argument("--split", choices=("train", "test"), default="test", help="which of the run's level sets")
    parser.add_argument(
        "--levels", help="other levels: COUNT, START:COUNT, A,B,C or all, none or all of them trained on"
    )
    parser.add_argument("--episodes", type=whole_number, default=500, help="episodes in all (default 500)")
    parser.add_argument("--seed", type=whole_number, default=0, help="of the levels drawn and the actions sampled")
    parser.add_argument("--member", type=whole_number, help="which learner of the run (default all)")
    parser.add_argument("--envs", type=whole_number, default=64, help="environments side by side (default 64)")
    parser.add_argument("--scores", type=Path, metavar="FILE", help="append rows here (default RUN/scores.csv)")
    parser.add_argument("--device", default="cpu", help="auto, cpu, cuda or cuda:N (default cpu)")
    arguments = parser.parse_args(argv)
    folder = RunFolder(arguments.run)
    rows = score_run(
        folder,
        arguments.split,
        arguments.levels,
        arguments.episodes,
        arguments.seed,
        arguments.member,
        arguments.envs,
        arguments.device,
    )
    print(_line("agent", "split", "levels", "steps", "episodes", "return", "95% interval", "solved"))
    for row in rows:
        print(_describe(row), flush=True)
        append_scores(arguments.scores or folder.scores_file, [row])
    return 0


def _describe(row: Score) -> str:
    interval = f"{row.ci_low:.2f} to {row.ci_high:.2f}"
    cells = (row.agent, row.split, row.levels, f"{row.env_steps:,}", row.episodes, f"{row.mean_return:.2f}", interval)
    return _line(*cells, f"{row.solved_rate:.1%}")


def _line(*cells: object) -> str:
    widths = (10, 6, 14, 11, 9, 7, 14, 7)
    return "  ".join(f"{cell!s:>{width}}" for cell, width in zip(cells, widths, strict=True))
