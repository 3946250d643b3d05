"""Choose the sections of a report: every exhibit that the scores can fill, in the paper's order."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from expgen.paper import numbers
from expgen.paper.exhibits import EXHIBITS
from expgen.report.ablation_sections import ablation_section, ensemble_size_section, norm_section, quorum_section
from expgen.report.aggregate_sections import aggregate_section, distribution_section, published_section
from expgen.report.curve_sections import checkpoint_section, mixture_section, splits_section, training_section
from expgen.report.curves import Curve
from expgen.report.exploration_sections import exploration_table, gap_section, levels_section, neighbor_section
from expgen.report.finding import finding_section
from expgen.report.own_sections import every_setting, glance_section, own_scores_section
from expgen.report.score_sections import FIVE_GAMES, bar_section, score_section
from expgen.report.score_table import ScoreTable
from expgen.report.section import Section

BUILDERS: dict[str, Callable[[ScoreTable], Section | None]] = {
    "figure-2": lambda table: bar_section(table, "figure-2", ("expgen", "leep", "idaac", "daac", "ppo"), FIVE_GAMES),
    "figure-4": lambda table: levels_section(table, "figure-4"),
    "figure-5": mixture_section,
    "table-1": lambda table: score_section(table, "table-1", "test"),
    "table-2": lambda table: score_section(table, "table-2", "train"),
    "figure-6": distribution_section,
    "figure-7": aggregate_section,
    "figure-9": lambda table: splits_section(table, "figure-9"),
    "figure-10": gap_section,
    "figure-11": lambda table: levels_section(table, "figure-11"),
    "table-4": quorum_section,
    "table-5": ensemble_size_section,
    "table-7": neighbor_section,
    "figure-12": lambda table: bar_section(table, "figure-12", ("ppo", "idaac", "expgen-idaac"), numbers.games()),
    "table-8": lambda table: score_section(table, "table-8", "train", "50m"),
    "table-9": lambda table: score_section(table, "table-9", "test", "50m"),
    "table-10": ablation_section,
    "table-11": lambda table: norm_section(table, "table-11", "train"),
    "table-12": lambda table: norm_section(table, "table-12", "test"),
    "figure-13": lambda table: splits_section(table, "figure-13"),
}  # Figures 1, 3 and 8 and Tables 3 and 6 show no scores; `expgen reproduce` makes them


def build_sections(
    table: ScoreTable, others: Sequence[Section] = (), only: Iterable[str] | None = None, curves: Sequence[Curve] = ()
) -> list[Section]:
    """Return the non-empty sections: findings, then exhibits in the paper's order, then further tables.

    table: the score rows. others: exhibits made elsewhere, by their names. curves: returns during training.
    only: names of the exhibits to build. Without it all are built, from the paper's games alone, and other environments
    get a section of their own; with it exhibits show every game in `table`.
    """
    wanted = set(EXHIBITS if only is None else only)
    in_paper = table.where(lambda entry: entry.is_paper_game) if only is None else table
    found = {section.name: section for section in others}
    found |= {name: section for name, build in BUILDERS.items() if name in wanted and (section := build(in_paper))}
    other_games = own_scores_section(table.where(lambda entry: not entry.is_paper_game)) if only is None else None
    sections = (
        finding_section(table),
        glance_section(table),
        other_games,
        *(found[name] for name in EXHIBITS if name in found),
        published_section(in_paper),
        checkpoint_section(curves),
        training_section(table, curves),
        exploration_table(table),
        every_setting(table),
    )
    return list(_without_repeated_notes(section for section in sections if section and not section.is_empty))


def _without_repeated_notes(sections: Iterable[Section]) -> Iterable[Section]:
    """Replace a note that an earlier section has by a reference to that section."""
    titles: dict[str, str] = {}
    for section in sections:
        first = titles.setdefault(section.note, section.short_title)
        is_repeated = section.note and first != section.short_title
        yield replace(section, note=f"Notes as under “{first}”.") if is_repeated else section
