"""ExpGen on ProcGen from the command line, at a tiny scale."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.envs.library import is_installed
from expgen.evaluation.scores import agent_name, read_scores
from expgen.runs.folder import RunFolder

TINY = (
    *("--algo", "expgen", "--preset", "smoke", "--device", "cpu", "--envs", "4", "--rollout-steps", "8"),
    *("--explorer-rollout-steps", "8", "--steps", "64", "--explorer-steps", "64", "--minibatches", "2"),
    *("--explorer-minibatches", "2", "--eval-every", "0", "--eval-episodes", "1"),
)
DENSE = ("--encoder", "small", "--explorer-encoder", "small")  # only Maze uses the large network
HIDDEN = (*DENSE, "--option", "hidden=true", "--levels", "128")  # Hidden Maze, Appendix A


@pytest.mark.procgen
@pytest.mark.slow
@pytest.mark.skipif(not is_installed(), reason="the ProcGen library is not installed")
@pytest.mark.parametrize(
    ("game", "words"),
    [("maze", ()), *((game, DENSE) for game in ("heist", "jumper", "miner")), ("maze", HIDDEN)],
    ids=["maze", "heist", "jumper", "miner", "hidden maze"],
)
def test_procgen_population_is_trained_and_evaluated(
    game: str, words: tuple[str, ...], command: Callable[..., Any], tmp_path: Path
) -> None:
    outcome = command("train", game, *TINY, *words, "--run", tmp_path)
    assert outcome.status == 0, outcome.err
    folder = RunFolder(tmp_path)
    config, _ = folder.read_config()
    assert folder.learners() == ["member0", "member1", "explorer"] and config.members == 2
    rows = read_scores(folder.scores_file)
    assert [(agent_name(row), row.game, row.split, row.env_steps) for row in rows] == [
        (agent, game, split, steps)
        for agent, steps in (("expgen members=2", 3 * 64), ("expgen fallback=random members=2", 2 * 64))
        for split in ("train", "test")
    ]
    assert rows[0].levels == ("0:128" if words == HIDDEN else "0:200")
