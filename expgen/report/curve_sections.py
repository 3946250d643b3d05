"""Scores while training: Figures 5, 9 and 13, and every method's curves."""

from expgen.evaluation.scores import SPLITS
from expgen.report.lines import Curves, curve_panels
from expgen.report.methods import Method
from expgen.report.score_table import ScoreTable
from expgen.report.section import Section
from expgen.report.style import SEQUENCE, SPLIT_COLORS, color_of

POINTS = 3  # two may be two runs of other lengths
BAND = "Bands are one standard deviation over runs."


def mixture_section(table: ScoreTable) -> Section | None:
    """Figure 5: test curves by β, a panel per γ; lines are the final scores of PPO and ExpGen."""
    mixed = [m for m in table.methods() if m.algorithm == "mixed" and m.has_only("beta", "gamma") and m.setting("beta")]
    if not mixed:
        return None
    figures = []
    for game in table.games(mixed):
        gammas = sorted({m.setting("gamma") for m in mixed}, key=float)
        betas = sorted({m.setting("beta") for m in mixed}, key=float)
        panels: dict[str, dict[str, Curves]] = {f"γ = {gamma}": {} for gamma in gammas}
        for method in sorted(mixed, key=lambda m: float(m.setting("beta"))):
            if curves := table.curves(method, game, "test"):
                panels[f"γ = {method.setting('gamma')}"][f"β = {method.setting('beta')}"] = curves
        panels = {title: lines for title, lines in panels.items() if lines}
        colors = {f"β = {beta}": SEQUENCE[place % len(SEQUENCE)] for place, beta in enumerate(betas)}
        levels = {
            m.label: cell.estimate.value
            for m in (Method("ppo"), Method("expgen"))
            if (cell := table.cell(m, game, "test"))
        }
        figure = curve_panels(panels, f"test return, {game}", colors, levels)
        figures.append((f"Test return on {game} of policies on the mixed reward, by β and γ", figure))
    return Section("figure-5", f"r_total = β r_I + (1 − β) r_ext (Eq. 9). {BAND}", figures=tuple(figures))


def hidden_section(table: ScoreTable) -> Section | None:
    """Figure 9: each run thin, the mean bold."""
    note = "PPO with a GRU that sees its own place and nothing else. Thin lines are runs, bold ones their mean."
    return _train_and_test(table, "figure-9", Method("ppo-gru", (("hidden", "true"),)), note, each_run=True)


def long_section(table: ScoreTable) -> Section | None:
    """Figure 13: mean and median."""
    note = f"Four times the usual steps. {BAND}"
    return _train_and_test(table, "figure-13", Method("idaac", (("budget", "100M"),)), note, median=True)


def _train_and_test(
    table: ScoreTable, name: str, method: Method, note: str, each_run: bool = False, median: bool = False
) -> Section | None:
    panels: dict[str, dict[str, Curves]] = {}
    for game in table.games([method]):
        panels[game] = {split: curves for split in SPLITS if (curves := table.curves(method, game, split))}
    if not panels:
        return None
    figure = curve_panels(panels, "return", SPLIT_COLORS, each_run=each_run, median=median)
    return Section(name, note, figures=((f"Train and test return of {method.label} against steps", figure),))


def training_section(table: ScoreTable) -> Section | None:
    """Test scores of plain methods against steps, where there are enough of them for a curve."""
    figures = []
    for game in table.games():
        lines: dict[str, Curves] = {}
        colors = {}
        for method in table.methods():
            curves = table.curves(method, game, "test") if method.has_only() else {}
            long = {run: curve for run, curve in curves.items() if len(curve) >= POINTS}
            if long:
                lines[method.label], colors[method.label] = long, color_of(method)
        if lines:
            figure = curve_panels({game: lines}, "test return", colors)
            figures.append((f"Test return on {game} against steps, by method", figure))
    if not figures:
        return None
    return Section("training", f"Scores on unseen levels while training. {BAND}", figures=tuple(figures),
                   heading="Training curves")  # fmt: skip
