"""Text that `expgen train` prints: a banner at the start, a table of scores at the end."""

from collections import Counter
from collections.abc import Iterator

from expgen.evaluation.scores import SPLITS, Score, agent_name, rows_so_far, variant_settings
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import OpenedRun
from expgen.runs.status import run_status
from expgen.storage.location import Location
from expgen.text import duration, printable, text_line
from expgen.training.metrics import MetricsFile
from expgen.training.resources import available_cores, num_workers, resolve_device


def run_lines(opened: OpenedRun, where: Location) -> list[str]:
    """Return the banner of one run: its location `where`, its progress, its learners."""
    config, total = opened.config, sum(plan.steps for plan in opened.plans)
    kinds = Counter(("explorer" if plan.is_explorer else "member", plan.steps) for plan in opened.plans)
    learners = " and ".join(f"{n} {kind}{'s' * (n > 1)} of {steps:,} steps" for (kind, steps), n in kinds.items())
    what = f"{config.algo} on {config.env}: {learners}; levels {config.levels}, seed {config.seed}"
    so_far = "a new run"
    if opened.folder.exists():
        status = run_status(opened.folder.path)
        so_far = f"resumes after {status.steps:,} of {total:,} steps"
        if status.seconds_left and total == status.total_steps:
            so_far += f", about {duration(status.seconds_left)} left at the speed so far"
    return [f"{where}: {so_far}", f"  {printable(what)}"]


def device_line(is_local: bool, device: str, processes: int | str, num_learners: int) -> str:
    """Return the line of the banner about devices and processes."""
    later = "the remaining time is shown after the first updates"
    if not is_local:
        return f"on a Ray cluster, one job per run; {later}, here and by expgen status"
    workers = num_workers(processes, device, num_learners)
    spread = f"{workers} processes" if workers > 1 else "one process"
    return f"on {resolve_device(device)} with {available_cores()} cores, {spread}; {later}"


def outcome(folder: RunFolder) -> Iterator[str]:
    """Yield a table of each agent's last scores on training and unseen levels; nothing without scores."""
    last: dict[str, dict[str, Score]] = {}
    name: dict[str, str] = {}  # full name of each agent, from its last row
    for row in rows_so_far(folder.scores_file):
        variant = f"{row.agent} {variant_settings(row.settings)}".strip()
        last.setdefault(variant, {})[row.split] = row
        name[variant] = agent_name(row)
    widths = (max(map(len, name.values()), default=0), 25, 6, 25, 6)
    if last:
        yield text_line(("agent", "return on training levels", "solved", "on unseen levels", "solved"), widths)
    for agent, scores in last.items():
        cells = [cell for split in SPLITS for cell in return_and_solved(scores.get(split))]
        yield text_line((name[agent], *cells), widths)
    explored = [row for row in MetricsFile(folder.metrics_file).rows() if row.get("test_oracle_share")]
    if explored:
        train, test = (float(explored[-1][f"{split}_oracle_share"]) for split in ("train", "test"))
        who = explored[-1]["learner"]
        yield f"{who} covers {train:.0%} of what an oracle covers on training levels, {test:.0%} on unseen ones"


def return_and_solved(score: Score | None) -> tuple[str, str]:
    """Return two cells of a table: mean return with interval, and solved rate."""
    if score is None:
        return "-", "-"
    return f"{score.mean_return:.2f} ({score.ci_low:.2f} to {score.ci_high:.2f})", f"{score.solved_rate:.1%}"
