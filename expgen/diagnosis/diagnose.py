"""diagnose: what a run's members, votes and explorer are worth on unseen levels, in words and as a figure."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from expgen.diagnosis.advice import Finding, findings
from expgen.diagnosis.figure import draw
from expgen.diagnosis.measure import Measurements, measure
from expgen.errors import InputError
from expgen.evaluation.evaluate import OnEpisode
from expgen.files import write_whole
from expgen.report.style import figure_files
from expgen.storage.location import Location

PICTURES = (".png", ".svg")


@dataclass(frozen=True)
class Diagnosis:
    """What was measured and found; `print` shows it in words."""

    measured: Measurements
    findings: list[Finding]  # the verdict first

    def __str__(self) -> str:
        lines = []
        for about, what, change in self.findings:
            lines.append(f"{about}: {what}")
            lines += [f"  change: {change}"] if change else []
        return "\n".join(lines)

    def figure(self) -> Figure:
        """Returns, agreement and coverage, side by side."""
        return draw(self.measured)

    def save(self, file: Path) -> None:
        """Write the figure as .png or .svg."""
        check_picture(file)
        write_whole(file, figure_files(self.figure())[file.suffix])


def diagnose(
    run: Location,
    episodes: int = 100,
    seed: int = 0,
    envs: int = 64,
    device: str = "cpu",
    on_start: Callable[[int], None] = lambda episodes: None,
    on_episode: OnEpisode = lambda episode: None,
) -> Diagnosis:
    """Play the policies of `run` and say whether ExpGen helps there, why or why not, and what to change.

    run: a run folder, its URL, an agent.json or an agent that ships.
    episodes: of each player on each split. seed: of the levels drawn and the actions sampled.
    envs: games side by side. device: auto, cpu, cuda or cuda:N.
    on_start, on_episode: told how many episodes there are in all, and each as it ends.
    """
    measured = measure(run, episodes, seed, envs, device, on_start, on_episode)
    return Diagnosis(measured, findings(measured))


def check_picture(file: Path) -> None:
    """An InputError where a figure could not be written as `file`."""
    if file.suffix not in PICTURES:
        raise InputError(f"--out is {str(file)!r}; accepted: a file that ends in {' or '.join(PICTURES)}")
