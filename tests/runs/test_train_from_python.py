"""expgen.train in a script or notebook: progress bar, signals and RunResult."""

import io
import os
import re
import signal
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import expgen
from expgen.errors import InputError
from expgen.runs import stop
from tests.conftest import SmallRun


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_train_shows_a_bar_on_a_terminal_only(
    tmp_path: Path, small: SmallRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small.train(tmp_path / "unseen")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys, "stderr", Terminal())
    small.train(tmp_path / "quiet", quiet=True)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]
    small.train(tmp_path / "seen")
    shown = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert "100%" in shown and "512/512" in shown and "step/s" in shown


def test_train_shows_a_bar_in_a_notebook(tmp_path: Path, small: SmallRun, monkeypatch: pytest.MonkeyPatch) -> None:
    ipython: Any = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    small.train(tmp_path / "run")
    assert "100%" in sys.stderr.getvalue()  # type: ignore[attr-defined]


def test_on_start_and_on_row_are_called_with_a_bar(
    tmp_path: Path, small: SmallRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    calls: list[Any] = []
    small.train(
        tmp_path,
        on_start=lambda *started: calls.append(started),
        on_row=lambda learner, row: calls.append((row["env_steps"], row["envs"])),
    )
    assert calls == [(512, {"member0": 0}), (128, 8), (256, 8), (384, 8), (512, 8)]


def test_ctrl_c_writes_a_checkpoint_and_the_run_resumes_bit_equal(
    tmp_path: Path, small: SmallRun, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupt(learner: str, row: dict[str, float]) -> None:
        if row["env_steps"] == 2 * small.update_steps:
            os.kill(os.getpid(), signal.SIGINT)

    result = small.train(tmp_path / "run", on_row=interrupt)
    assert not result.is_complete and small.facts(tmp_path / "run")["env_steps"] == 2 * small.update_steps
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith("expgen: stopping when every learner has finished its rollout") and len(lines) == 2
    assert lines[1] == f"expgen: stopped; continue with: expgen.train(run={str(tmp_path / 'run')!r}, resume=True)"
    assert "ppo on minimaze, stopped" in repr(result)
    with pytest.raises(KeyboardInterrupt):  # the previous handlers are restored
        os.kill(os.getpid(), signal.SIGINT)
    whole = small.train(tmp_path / "whole")
    assert whole.is_complete and expgen.train(run=tmp_path / "run", resume=True, device="cpu").is_complete
    for name, weight in small.weights(tmp_path / "whole").items():
        assert weight.equal(small.weights(tmp_path / "run")[name])


def test_second_ctrl_c_raises_keyboard_interrupt(
    tmp_path: Path, small: SmallRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "SAME_SECONDS", 0.0)

    def interrupt(learner: str, row: dict[str, float]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        small.train(tmp_path, on_row=interrupt)


def test_sigterm_writes_a_checkpoint_and_ends_the_script(tmp_path: Path, small: SmallRun) -> None:
    settings = {**small.settings, "steps": 8 * small.update_steps}
    code = f"""
import expgen, os, signal
expgen.train(run={str(tmp_path)!r}, on_row=lambda learner, row: os.kill(os.getpid(), signal.SIGTERM), **{settings!r})
print("not reached")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGTERM and done.stdout == ""
    assert small.facts(tmp_path)["env_steps"] == small.update_steps


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, small: SmallRun) -> expgen.RunResult:
    return small.train(tmp_path_factory.mktemp("runs") / "run", eval_every=2 * small.update_steps)


def test_result_has_scores_and_an_agent(result: expgen.RunResult) -> None:
    assert {(row.agent, row.split) for row in result.scores} == {("member0", "train"), ("member0", "test")}
    env = expgen.make_env("minimaze", levels=5, num_envs=2)
    assert len(expgen.evaluate(result.agent, env, 4).episodes) == 4


def test_result_has_curves_as_a_data_frame(result: expgen.RunResult) -> None:
    pandas = pytest.importorskip("pandas")
    curves = result.curves
    assert isinstance(curves, pandas.DataFrame) and curves["env_steps"].tolist() == [128, 256, 384, 512]
    assert set(curves["learner"]) == {"member0"} and curves["test_return"].notna().tolist() == [
        False,
        True,
        False,
        True,
    ]
    assert curves.dtypes["entropy"] == "float64" and curves.dtypes["env_steps"] == "int64"


def test_curves_without_pandas_raise_input_error(result: expgen.RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"^curves need pandas, which is missing: pip install pandas$"):
        result.curves  # noqa: B018


def test_reprs_are_short(result: expgen.RunResult) -> None:
    lines = re.sub(r"'.*/run'", "'run'", repr(result))
    assert re.fullmatch(
        r"RunResult\('run': ppo on minimaze, done; member0 train \d+\.\d\d, member0 test \d+\.\d\d\)", lines
    )
    env = expgen.make_env("minimaze", levels=range(3, 9), num_envs=2)
    assert repr(env) == "Minimaze('minimaze', 2 games, levels 3:6)"
    assert repr(expgen.LevelSet.parse(200)) == "LevelSet('0:200')"
    assert repr(expgen.LevelSet.parse("all").without(expgen.LevelSet.parse(200))) == "LevelSet('all', 200 excluded)"
    assert len(repr(expgen.LevelSet.parse(range(0, 999, 2)))) < 60
    lines = repr(expgen.evaluate(result.agent, env, 4))
    assert re.fullmatch(r"Evaluation\(mean_return=\d.* \(95 % .* to .*\), solved_rate=\d.*%, 4 episodes\)", lines)
    assert repr(result.folder) == f"RunFolder({str(result.folder.path)!r})"
    assert repr(result.agent) == "PolicyAgent(minimaze, no memory, on cpu)"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"quiet": "yes"}, "quiet is 'yes'; accepted: True or False"),
        ({"quiet": None}, "quiet is None; accepted: True or False"),
        ({"env": "chess"}, "'chess'; accepted: "),
        ({"env": "procgen:pong"}, "'pong'; accepted: bigfish"),
        ({"env": "gymnasium:NoSuch-v0"}, "NoSuch"),
        ({"algo": "a3c"}, "--algo is 'a3c'; accepted: "),
        ({"preset": "huge"}, "preset is 'huge'; accepted: "),
        ({"device": "gpu"}, "--device is 'gpu'; accepted: "),
        ({"processes": 0}, "--processes is 0; accepted: "),
        ({"processes": "many"}, "--processes is 'many'; accepted: "),
        ({"hang_seconds": -1}, "--hang-seconds is -1; accepted: "),
        ({"steps": 1}, "--steps is 1; accepted: 128"),
        ({"steps": 1.5}, "--steps is 1.5; accepted: a value of type int"),
        ({"steps": "1M"}, "--steps is '1M'; accepted: a value of type int"),
        ({"gamma": 2}, "--gamma is 2; accepted: 0 to 1"),
        ({"gamma": float("nan")}, "--gamma is nan; accepted: a finite number"),
        ({"levels": "all"}, "--levels is 'all'; accepted: a finite set"),
        ({"levels": "few"}, "levels is 'few'; accepted: COUNT"),
        ({"test_levels": "0:10"}, "--test-levels 0:10 overlap --levels 20"),
        ({"encoder": "huge"}, "--encoder is 'huge'; accepted: "),
        ({"min_agree": 2}, "'min_agree'"),
        ({"learning_rat": 1e-3}, "'learning_rat'"),
        ({"options": {"colour": 1}}, "option 'colour' is unknown; accepted: "),
    ],
)
def test_invalid_train_arguments_are_refused_in_one_line(
    how: dict[str, Any], message: str, tmp_path: Path, small: SmallRun
) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        small.train(tmp_path / "run", **how)
    assert "\n" not in str(refusal.value) and not (tmp_path / "run").exists()
