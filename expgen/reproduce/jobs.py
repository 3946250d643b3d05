"""Every table and figure of the paper as a list of jobs."""

from collections.abc import Callable, Iterable, Sequence
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
GAP_GAMES = ("maze", "jumper", "miner")
LONG_GAMES = tuple(dict.fromkeys(row["game"] for row in numbers.rows("test_50m")))
RIVALS = ("plr", "ucb-drac", "ppg", "leep")

Games = Sequence[str]


def jobs_of(names: Iterable[str], scale: Scale, games: Games | None = None) -> list[Job]:
    """The runs behind the exhibits `names`, each once; `games` keeps to some of the games that they ask for."""
    planner = Planner(scale)
    wanted = set(games if games is not None else numbers.games())
    jobs: list[Job] = []
    for name in names:
        exhibit_games, plan = _PLANS[name]
        played = [game for game in exhibit_games if game in wanted]
        for game in played:
            jobs += plan(planner, game)
    return merged(jobs)


def _all_methods(p: Planner, game: str) -> list[Job]:
    rivals = [p.train(game, algo) for algo in RIVALS]
    return [*p.expgen(game), *rivals, p.expgen_idaac(game)]


def _five_bars(p: Planner, game: str) -> list[Job]:
    return [*p.expgen(game), p.train(game, "leep"), p.train(game, "daac"), p.expgen_idaac(game)]


def _levels(p: Planner, game: str, with_memory_ablation: bool = False) -> list[Job]:
    jobs = [p.ppo(game), *p.explorers(game, 4)]
    if with_memory_ablation:
        jobs += [p.train(game, "ppo-gru"), _explorers_on(p, game, 200, memory="none")]
    for count in p.scale.thinned(LEVEL_COUNTS)[1:]:
        label = f"levels={count}"
        jobs += [p.train(game, "ppo", 4, label=label, levels=str(count)), _explorers_on(p, game, count)]
        if with_memory_ablation:
            jobs += [
                p.train(game, "ppo-gru", 4, label=label, levels=str(count)),
                _explorers_on(p, game, count, memory="none"),
            ]
    return jobs


def _explorers_on(p: Planner, game: str, count: int, memory: str = "") -> Job:
    words = ([f"levels={count}"] if count != 200 else []) + ([f"memory={memory}"] if memory else [])
    changes: dict[str, Any] = {"memory": memory} if memory else {}
    steps, label = p.scale.explorer_steps, " ".join(words)
    return p.train(game, "maxent", 4, label=label, levels=str(count), steps=steps, **changes)


def _with_memory_ablation(p: Planner, game: str) -> list[Job]:
    return _levels(p, game, with_memory_ablation=True)


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
    asked = [scoring for quorum in p.scale.quorums(QUORUMS) for scoring in p.leaders(min_agree=quorum)]
    return p.expgen(game, tuple(asked))


def _sizes(p: Planner, game: str) -> list[Job]:
    asked = [scoring for size in p.scale.sizes(ENSEMBLE_SIZES) for scoring in p.leaders(size, ensemble_size=size)]
    return p.expgen(game, tuple(asked))


def _ablation(p: Planner, game: str) -> list[Job]:
    scorings = p.leaders() + p.leaders(fallback="random")
    return [*p.expgen(game, scorings), p.train(game, "leep"), p.train(game, "ppo-gru")]


def _norms(p: Planner, game: str) -> list[Job]:
    return [*p.expgen(game), *p.expgen(game, label="distance=l0", distance="l0")]


def _longer(p: Planner, game: str) -> list[Job]:
    return [*p.expgen(game, p.leaders(8), budget="50M"), *p.longer(game, "leep", "50M")]


_ALL, _MAZE = numbers.games(), ("maze",)
Plan = tuple[Games, Callable[[Planner, str], list[Job]]]
_NO_RUNS: Plan = ((), lambda p, game: [])
_PLANS: dict[str, Plan] = {
    "figure-1": _NO_RUNS,
    "figure-2": (FIVE_GAMES, _five_bars),
    "figure-3": (_MAZE, lambda p, game: [p.explorer(game)]),
    "figure-4": (GAP_GAMES, _levels),
    "figure-5": (_MAZE, _mixtures),
    "table-1": (_ALL, _all_methods),
    "table-2": (_ALL, _all_methods),
    "figure-6": (_ALL, _all_methods),
    "figure-7": (_ALL, _all_methods),
    "figure-8": _NO_RUNS,
    "figure-9": (_MAZE, lambda p, game: [p.hidden_maze()]),
    "figure-10": (_ALL, lambda p, game: [p.ppo(game), *p.explorers(game, 4)]),
    "figure-11": (GAP_GAMES, _with_memory_ablation),
    "table-3": _NO_RUNS,
    "table-4": (_ALL, _quorums),
    "table-5": (_MAZE, _sizes),
    "table-6": _NO_RUNS,
    "table-7": (_MAZE, _neighbor_ranks),
    "figure-12": (_ALL, lambda p, game: [p.ppo(game), p.expgen_idaac(game)]),
    "table-8": (LONG_GAMES, _longer),
    "table-9": (LONG_GAMES, _longer),
    "table-10": (_MAZE, _ablation),
    "table-11": (("heist", "maze"), _norms),
    "table-12": (("heist", "maze"), _norms),
    "figure-13": (("maze", "jumper"), lambda p, game: [p.train(game, "idaac", budget="100M")]),
}
