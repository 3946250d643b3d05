"""Scores while training: Figures 5, 9 and 13."""

from expgen.evaluation.scores import SPLITS
from expgen.report.lines import Curves, curve_panel
from expgen.report.methods import Method
from expgen.report.score_table import ScoreTable
from expgen.report.section import Section
from expgen.report.style import SEQUENCE, SPLIT_COLORS

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
        colors = {f"β = {beta}": SEQUENCE[place % len(SEQUENCE)] for place, beta in enumerate(betas)}
        levels = {
            m.label: cell.estimate.value
            for m in (Method("ppo"), Method("expgen"))
            if (cell := table.cell(m, game, "test"))
        }
        for title, lines in panels.items():
            if lines:
                words = f"Test return on {game} of policies on the mixed reward, by β, with {title}"
                figures.append((words, curve_panel(title, lines, f"test return, {game}", colors, levels)))
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
    figures = []
    for game in table.games([method]):
        lines: dict[str, Curves] = {split: found for split in SPLITS if (found := table.curves(method, game, split))}
        figure = curve_panel(game, lines, "return", SPLIT_COLORS, each_run=each_run, median=median)
        figures.append((f"Train and test return of {method.label} on {game} against steps", figure))
    return Section(name, note, figures=tuple(figures)) if figures else None
