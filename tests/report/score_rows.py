"""Made-up score rows: a few runs around each mean printed in the paper."""

from dataclasses import replace

import numpy as np

from expgen.evaluation.scores import Score
from expgen.paper import numbers
from expgen.report.entry import Entry, number_entries
from expgen.report.score_table import ScoreTable

MEASURES = {"intrinsic": "intrinsic_return", "oracle": "oracle_share", "success": "oracle_success"}


def make_row(algorithm="ppo", game="maze", seed=0, split="test", mean=5.0, steps=25_000_000, agent="member0", **fields):
    """Return a plausible score row; the words after the first in `agent` are its settings."""
    plain = {"env": f"procgen:{game}", "levels": "all" if split == "test" else "0:200", "episodes": 1000,
             "std_return": 4.0, "solved_rate": mean / 10, "ci_low": mean - 0.3, "ci_high": mean + 0.3,
             "commit": "0123456789ab"}  # fmt: skip
    name, _, settings = agent.partition(" ")
    return Score(
        algorithm=algorithm, game=game, seed=seed, split=split, mean_return=mean, env_steps=steps, agent=name,
        settings=settings, **{**plain, **fields},
    )  # fmt: skip


def make_table(rows, **settings):
    return ScoreTable(number_entries([_read(row, i + 2) for i, row in enumerate(rows)], []), **settings)


def _read(row, line):
    """Return an entry; the setting `measure=…` makes it one of exploration.csv."""
    words = row.settings.split()
    measures = [MEASURES[word.removeprefix("measure=")] for word in words if word.startswith("measure=")]
    settings = " ".join(word for word in words if not word.startswith("measure="))
    return Entry(replace(row, settings=settings), "scores.csv", line, *measures)


def paper_like_rows(runs=3):
    """Return rows for every exhibit that scores can fill."""
    rng = np.random.default_rng(0)
    rows = []

    def add(mean, std=0.2, count=runs, **fields):
        for seed in range(count):
            rows.append(make_row(seed=seed, mean=float(mean + std * rng.standard_normal()), **fields))

    for split in ("train", "test"):
        for (algorithm, game), cell in numbers.scores(split).items():
            add(cell.mean, cell.std, algorithm=algorithm, game=game, split=split)
        for game in numbers.games():
            add(33 if split == "train" else 30, algorithm="maxent", game=game, split=split,
                agent="explorer measure=intrinsic")  # fmt: skip
        for (algorithm, game), cell in numbers.scores(split, "50m").items():
            add(cell.mean, cell.std, algorithm=algorithm, game=game, split=split, agent="member0 budget=50M")
        add(9.3 if split == "train" else 6.2, algorithm="expgen", split=split, agent="expgen fallback=random")
        add(9.5 if split == "train" else 5.4, algorithm="ppo-gru", split=split)
        for (method, game, of_split), cell in numbers.cells("norm_l0_l2", "method", "game", "split").items():
            if method == "ExpGen-L0" and of_split == split:
                add(cell.mean, algorithm="expgen", game=game, split=split, agent="expgen distance=l0")
        for levels in (500, 1000, 5000):
            for game in ("maze", "jumper", "miner"):
                gain = 0.0 if split == "train" else levels / 2500
                for memory in ("", " memory=none"):
                    agent = f"explorer levels={levels}{memory}"
                    add(30 + gain, algorithm="maxent", game=game, split=split, agent=f"{agent} measure=intrinsic")
                    add(0.8, 0.02, algorithm="maxent", game=game, split=split, agent=f"{agent} measure=oracle")
                    add(0.6, 0.02, algorithm="maxent", game=game, split=split, agent=f"{agent} measure=success")
                for algorithm in ("ppo", "ppo-gru"):
                    add(7 + gain, algorithm=algorithm, game=game, split=split, agent=f"member0 levels={levels}")
        for rank, cells in numbers.neighbor_ranks().items():
            word = "" if rank == 2 else f" neighbor_rank={rank}"
            if word:
                cell = cells[f"maxent_{split}"]
                add(cell.mean, cell.std, algorithm="maxent", split=split, agent=f"explorer{word} measure=intrinsic")
                add(cells["expgen_test"].mean, algorithm="expgen", split=split, agent=f"expgen{word}")
        for step in range(1, 11):
            for game in ("maze", "jumper"):
                add(6 + (step if split == "train" else 1 / step) / 4, algorithm="idaac", game=game, split=split,
                    steps=step * 10_000_000, agent="member0 budget=100M")  # fmt: skip
            add(4 + (step if split == "train" else 0) / 2, 0.6, algorithm="ppo-gru", split=split,
                steps=step * 2_500_000, agent="member0 hidden=true")  # fmt: skip
            add(3 + step / 4, 0.3, algorithm="ppo", split=split, steps=step * 2_490_000)
    for (size,), cell in numbers.cells("ensemble_size", "ensemble_size").items():
        add(cell.mean, cell.std, algorithm="expgen", agent=f"expgen ensemble_size={size} min_agree={int(size) // 2}")
    for quorum in (2, 4, 6, 8):
        add(7 + quorum / 8, algorithm="expgen", agent=f"expgen min_agree={quorum}")
    for gamma in (0.5, 0.9):
        for beta in (0.1, 0.5, 0.9):
            for step in range(1, 6):
                add(5 + step * (1 - beta) / 4, algorithm="mixed", steps=step * 10_000_000,
                    agent=f"member0 beta={beta} gamma={gamma}")  # fmt: skip
    return rows
