"""What a run has come to, as a table: every agent's last scores on training and on unseen levels."""

from collections.abc import Iterator

from expgen.evaluation.scores import Score, agent_name, rows_so_far
from expgen.runs.folder import RunFolder
from expgen.text import text_line
from expgen.training.metrics import MetricsFile


def outcome(folder: RunFolder) -> Iterator[str]:
    """Lines to print; none where nothing was scored."""
    last: dict[str, dict[str, Score]] = {}
    name: dict[str, str] = {}  # each agent's in full, of its last row
    for row in rows_so_far(folder.scores_file):
        variant = agent_name(row, with_asides=False)
        last.setdefault(variant, {})[row.split] = row
        name[variant] = agent_name(row)
    width = max(map(len, name.values()), default=0)
    if last:
        yield _line("agent", "return on training levels", "solved", "on unseen levels", "solved", width=width)
    for agent, scores in last.items():
        yield _line(name[agent], *_cells(scores.get("train")), *_cells(scores.get("test")), width=width)
    explored = [row for row in MetricsFile(folder.metrics_file).rows() if row.get("test_oracle_share")]
    if explored:
        train, test = (float(explored[-1][f"{split}_oracle_share"]) for split in ("train", "test"))
        who = explored[-1]["learner"]
        yield f"{who} covers {train:.0%} of what an oracle does on training levels, {test:.0%} on unseen ones"


def _cells(score: Score | None) -> tuple[str, str]:
    if score is None:
        return "-", "-"
    return f"{score.mean_return:.2f} ({score.ci_low:.2f} to {score.ci_high:.2f})", f"{score.solved_rate:.1%}"


def _line(*cells: str, width: int) -> str:
    return text_line(cells, (width, 25, 6, 25, 6))
