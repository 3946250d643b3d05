"""The jobs of every table and figure of the paper."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from expgen.paper import numbers
from expgen.report.score_sections import FIVE_GAMES
from expgen.reproduce.job import Job, merged
from expgen.reproduce.planner import Planner
from expgen.reproduce.scale import Scale

LEVEL_COUNTS = (200, 500, 1000, 5000)  # Section 4.2
BETAS, GAMMAS = (0.1, 0.3, 0.5, 0.7, 0.9), (0.5, 0.9, 0.99)  # Figure 5; the paper names only γ = 0.5
NEIGHBOR_RANKS = tuple(range(1, 11))  # Table 7
ENSEMBLE_SIZES, QUORUMS = (4, 6, 8, 10), (1, 2, 4, 6, 8)  # Appendix C.2, and the 1 of Table 4
RIVALS = ("plr", "ucb-drac", "ppg", "leep")


def jobs_of(names: Iterable[str], scale: Scale, games: Sequence[str] | None = None) -> list[Job]:
    """Return the jobs of the exhibits `names`, each once; `games` restricts them to some games."""
    planner, selected = Planner(scale), set(games if games is not None else numbers.games())
    jobs = []
    for name in names:
        if name in _PLANS:
            exhibit_games, plan = _PLANS[name]
            jobs += [job for game in exhibit_games if game in selected for job in plan(planner, game)]
    return merged(jobs)


def _all_methods(p: Planner, game: str) -> list[Job]:
    return [*p.expgen(game), *(p.train(game, algo) for algo in RIVALS), p.expgen_idaac(game)]


def _five_bars(p: Planner, game: str) -> list[Job]:
    return [*p.expgen(game), p.train(game, "leep"), p.train(game, "daac"), p.expgen_idaac(game)]


def _levels(p: Planner, game: str, with_memory_ablation: bool = False) -> list[Job]:
    jobs = [p.ppo(game), *p.explorers(game, 4)]
    if with_memory_ablation:
        jobs += [p.train(game, "ppo-gru"), _explorers_on(p, game, 200, memory="none")]
    for count in p.scale.thinned(LEVEL_COUNTS)[1:]:
        levels = {"label": f"levels={count}", "levels": str(count)}
        jobs += [p.train(game, "ppo", 4, **levels), _explorers_on(p, game, count)]
        if with_memory_ablation:
            jobs += [p.train(game, "ppo-gru", 4, **levels), _explorers_on(p, game, count, memory="none")]
    return jobs


def _explorers_on(p: Planner, game: str, count: int, **changes: Any) -> Job:
    words = ([f"levels={count}"] if count != 200 else []) + [f"{name}={value}" for name, value in changes.items()]
    settings = {"levels": str(count), "steps": p.scale.explorer_steps, **changes}
    return p.train(game, "maxent", 4, label=" ".join(words), **settings)


def _mixtures(p: Planner, game: str) -> list[Job]:
    grid = [(beta, gamma) for gamma in p.scale.thinned(GAMMAS) for beta in p.scale.thinned(BETAS)]
    mixed = [
        p.train(game, "mixed", 4, label=f"beta={beta} gamma={gamma}", beta=beta, gamma=gamma, steps=2 * p.scale.steps)
        for beta, gamma in grid
    ]
    return [*p.expgen(game), *mixed]


def _neighbor_ranks(p: Planner, game: str) -> list[Job]:
    jobs = [*p.explorers(game, 3), *p.expgen(game)]
    for rank in p.scale.thinned(NEIGHBOR_RANKS):
        if rank != 2:
            label = f"neighbor_rank={rank}"
            jobs += p.explorers(game, 3, label, neighbor_rank=rank)
            jobs += p.expgen(game, p.leaders(3), label=label, neighbor_rank=rank)
    return jobs


def _quorums(p: Planner, game: str) -> list[Job]:
    return p.expgen(game, [scoring for k in p.scale.quorums(QUORUMS) for scoring in p.leaders(min_agree=k)])


def _sizes(p: Planner, game: str) -> list[Job]:
    sizes = p.scale.sizes(ENSEMBLE_SIZES)
    return p.expgen(game, [scoring for m in sizes for scoring in p.leaders(m, ensemble_size=m)])


def _ablation(p: Planner, game: str) -> list[Job]:
    scorings = p.leaders() + p.leaders(fallback="random")
    return [*p.expgen(game, scorings), p.train(game, "leep"), p.train(game, "ppo-gru")]


def _norms(p: Planner, game: str) -> list[Job]:
    return [*p.expgen(game), *p.expgen(game, label="distance=l0", distance="l0")]


def _longer(p: Planner, game: str) -> list[Job]:
    return [*p.expgen(game, p.leaders(8), budget="50M"), *p.longer(p.train(game, "leep"), "50M")]


_ALL, _MAZE, _GAPS, _NORMS = numbers.games(), ("maze",), ("maze", "jumper", "miner"), ("heist", "maze")
_LONG = tuple(dict.fromkeys(row["game"] for row in numbers.rows("test_50m")))
_PLANS: dict[str, tuple[Sequence[str], Callable[[Planner, str], list[Job]]]] = {
    "figure-2": (FIVE_GAMES, _five_bars),
    "figure-3": (_MAZE, lambda p, game: [p.explorer(game)]),
    "figure-4": (_GAPS, _levels),
    "figure-5": (_MAZE, _mixtures),
    "table-1": (_ALL, _all_methods),
    "table-2": (_ALL, _all_methods),
    "figure-6": (_ALL, _all_methods),
    "figure-7": (_ALL, _all_methods),
    "figure-9": (_MAZE, lambda p, game: [p.hidden_maze()]),
    "figure-10": (_ALL, lambda p, game: [p.ppo(game), *p.explorers(game, 4)]),
    "figure-11": (_GAPS, partial(_levels, with_memory_ablation=True)),
    "table-4": (_ALL, _quorums),
    "table-5": (_MAZE, _sizes),
    "table-7": (_MAZE, _neighbor_ranks),
    "figure-12": (_ALL, lambda p, game: [p.ppo(game), p.expgen_idaac(game)]),
    "table-8": (_LONG, _longer),
    "table-9": (_LONG, _longer),
    "table-10": (_MAZE, _ablation),
    "table-11": (_NORMS, _norms),
    "table-12": (_NORMS, _norms),
    "figure-13": (("maze", "jumper"), lambda p, game: [p.train(game, "idaac", budget="100M")]),
}  # Figures 1 and 8 and Tables 3 and 6 need no runs
