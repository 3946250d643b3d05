"""What a command is about to train, where and on what, told before it begins."""

from expgen.runs.folder import RunFolder
from expgen.runs.open_run import OpenedRun
from expgen.runs.plan import plans_of
from expgen.runs.status import run_status
from expgen.storage.location import Location
from expgen.text import duration, printable
from expgen.training.resources import cores_here, num_workers, resolve_device


def run_lines(opened: OpenedRun, where: Location) -> list[str]:
    """What one run trains, and how far it is; `where` is its folder or URL."""
    config = opened.config
    steps: dict[tuple[str, int], int] = {}  # how many learners of a kind have so many steps
    plans = plans_of(config)
    for plan in plans:
        kind = plan.name.rstrip("0123456789")
        steps[kind, plan.steps] = steps.get((kind, plan.steps), 0) + 1
    learners = " and ".join(f"{n} {kind}{'s' * (n > 1)} of {each:,} steps" for (kind, each), n in steps.items())
    what = f"{config.algo} on {config.env}: {learners}; levels {config.levels}, seed {config.seed}"
    return [f"{where}: {_so_far(opened.folder, sum(plan.steps for plan in plans))}", f"  {printable(what)}"]


def _so_far(folder: RunFolder, total: int) -> str:
    if not folder.exists():
        return "a new run"
    status = run_status(folder.path)
    is_known = status.seconds_left and total == status.total_steps
    left = f", about {duration(status.seconds_left or 0)} left at the speed so far" if is_known else ""
    return f"goes on; {status.steps:,} of {total:,} steps are done{left}"


def device_line(is_local: bool, device: str, processes: int | str, num_learners: int) -> str:
    """Who computes, and where to see how long it takes."""
    later = "how long it takes is known after the first updates"
    if not is_local:
        return f"on a Ray cluster, a job for each run; {later}, here and by expgen status"
    workers = num_workers(processes, device, num_learners)
    spread = f"{workers} processes" if workers > 1 else "one process"
    return f"on {resolve_device(device)} with {cores_here()} cores, {spread}; {later}"
