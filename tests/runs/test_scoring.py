"""Scores during and after training: levels, rows and metrics."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import expgen
from expgen.evaluation.evaluate import result_of
from expgen.evaluation.scores import read_scores
from expgen.provenance import commit
from expgen.runs import run_scorer
from expgen.runs.agent_files import read_agent
from expgen.runs.folder import RunFolder
from expgen.runs.messages import ScoreRequest
from expgen.runs.plan import plans_of
from expgen.runs.request import EvaluationRequest, score_all
from expgen.runs.run_scorer import RunScorer
from expgen.training.metrics import MetricsFile
from expgen.training.resources import plan_resources
from tests.policies import load_policy


@pytest.fixture(scope="module")
def run(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "two"
    small.train(run, members=2, seed=5, eval_every=2 * small.update_steps)
    return run


def test_final_scores_are_written_to_scores_csv(run: Path, small: Any) -> None:
    rows = read_scores(run / "scores.csv")
    assert [(row.agent, row.seed, row.split, row.levels) for row in rows] == [
        *(("member0", 5, "train", "0:20"), ("member0", 5, "test", "all")),
        *(("member1", 6, "train", "0:20"), ("member1", 6, "test", "all")),
    ]
    for row in rows:
        assert (row.algorithm, row.game, row.env, row.env_steps) == ("ppo", "minimaze", "minimaze", 512)
        assert row.episodes == 4 and row.commit == commit()
        assert row.ci_low <= row.mean_return <= row.ci_high and row.mean_return == 10 * row.solved_rate


def test_scores_of_a_run_are_at_its_temperature(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1, temperature=0, average=0.9, eval_every=small.update_steps)
    rows = read_scores(tmp_path / "scores.csv")
    assert {row.settings for row in rows} == {"temperature=0", "weights=average temperature=0"}
    (scored,) = score_all(read_agent(tmp_path), EvaluationRequest("test", episodes=4))
    (same,) = [row for row in rows if (row.split, row.settings) == ("test", "temperature=0")]
    assert scored.score.mean_return == same.mean_return and scored.score.settings == same.settings


def test_scheduled_scores_are_written_to_metrics_csv(run: Path, small: Any) -> None:
    rows = MetricsFile(run / "metrics.csv").rows()
    scored = {(row["learner"], int(row["env_steps"]) // small.update_steps) for row in rows if row["test_return"]}
    assert scored == {("member0", 2), ("member0", 4), ("member1", 2), ("member1", 4)}
    last = next(row for row in rows if row["learner"] == "member1" and row["env_steps"] == "512")
    test = next(row for row in read_scores(run / "scores.csv") if (row.agent, row.split) == ("member1", "test"))
    assert float(last["test_return"]) == test.mean_return and float(last["test_solved"]) == test.solved_rate


def test_score_row_has_the_commit_at_its_start(run: Path) -> None:
    commit.cache_clear()
    known: list[int] = []
    request = EvaluationRequest(episodes=2, learner="member0")
    (scored,) = score_all(read_agent(run), request, lambda episode: known.append(commit.cache_info().currsize))
    assert known == [1, 1] and scored.score.commit == commit()


def test_repeated_score_is_written_once(run: Path, small: Any) -> None:
    folder = RunFolder(run)
    config, _ = folder.read_config()
    before = read_scores(folder.scores_file)
    scorer = RunScorer(read_agent(run), config, folder, plan_resources("cpu", 1))
    policy, env_steps = load_policy(folder, "member0")
    result_of(scorer.score("member0", env_steps, {"live": policy}))
    assert read_scores(folder.scores_file) == before


def test_saved_weights_are_scored_without_a_second_copy(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU a policy for play replays a graph; a copy for play of that would record a graph inside a graph."""
    folder = RunFolder(run)
    config, _ = folder.read_config()
    scorer = RunScorer(read_agent(run), config, folder, plan_resources("cpu", 1))
    monkeypatch.setattr(run_scorer, "for_play", None)
    newest = max(folder.checkpoints_of("member0").glob("*.safetensors"))
    scores = result_of(scorer.score_request(ScoreRequest(run, "member0", 512, newest)))
    assert set(scores) == {"train_return", "train_solved", "test_return", "test_solved"}


def test_bootstrapped_member_is_scored_on_its_own_training_levels(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, members=2, member_levels="bootstrap", eval_every=10**9)
    folder = RunFolder(tmp_path)
    config, _ = folder.read_config()
    seen = {plan.name: str(plan.policy.levels) for plan in plans_of(config)}
    assert len(set(seen.values())) == 2 and "0:20" not in seen.values()
    final = [row for row in read_scores(folder.scores_file) if row.split == "train"]
    asked = [scored.score for scored in score_all(read_agent(tmp_path), EvaluationRequest("train", episodes=6))]
    for rows in (final, asked):
        assert {row.agent: row.levels for row in rows} == seen


class Flicker(gymnasium.Env):
    """Random frames; the length of an episode is drawn from `lengths`."""

    observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = int(self.np_random.choice(self.lengths))
        return self._frame(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        return self._frame(), float(action), self.left == 0, False, {}

    def _frame(self) -> np.ndarray:
        return self.np_random.integers(256, size=(8, 8, 3), dtype=np.uint8)


def test_explorer_is_scored_if_an_option_is_a_list(small: Any, tmp_path: Path) -> None:
    expgen.register("env", "flicker", Flicker)
    small.train(tmp_path, 1, env="flicker", algo="maxent", options={"lengths": [2, 3]}, eval_every=10**9)
    assert {row.agent for row in read_scores(tmp_path / "scores.csv")} == {"member0"}
