"""Text that `expgen train` prints: a banner at the start, a table of scores at the end."""

import math
from collections import Counter
from collections.abc import Iterator

from expgen.evaluation.scores import SPLITS, Score
from expgen.runs.current_scores import CurrentScores
from expgen.runs.make_config import OpenedRun
from expgen.runs.status import newest_checkpoint_steps, run_status
from expgen.storage.location import Location
from expgen.text import duration, printable, text_line
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
        done = sum(newest_checkpoint_steps(opened.folder, plan.name) for plan in opened.plans)  # rows may be ahead
        so_far = f"resumes after {done:,} of {total:,} steps"
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


def outcome(current: CurrentScores) -> Iterator[str]:
    """Yield a table of the scores on training and unseen levels, and what the explorers cover; nothing without."""
    widths = (max(map(len, current.scores), default=0), 25, 6, 25, 6, 8)
    if current.scores:
        names = ("agent", "return on training levels", "solved", "on unseen levels", "solved", "episodes")
        yield text_line(names, widths)
    for agent, scores in current.scores.items():
        cells = [cell for split in SPLITS for cell in return_and_solved(scores.get(split))]
        episodes = " and ".join(dict.fromkeys(str(scores[split].episodes) for split in SPLITS if split in scores))
        yield text_line((agent, *cells, episodes), widths)
    for agent, measured in current.exploration.items():
        train, test = (measured[split].oracle_share if split in measured else math.nan for split in SPLITS)
        if not math.isnan(train + test):
            yield f"{agent} covers {train:.0%} of what an oracle covers on training levels, {test:.0%} on unseen ones"


def return_and_solved(score: Score | None) -> tuple[str, str]:
    """Return two cells of a table: mean return with interval, and solved rate."""
    if score is None:
        return "-", "-"
    return f"{score.mean_return:.2f} ({score.ci_low:.2f} to {score.ci_high:.2f})", f"{score.solved_rate:.1%}"
