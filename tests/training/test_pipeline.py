"""Pipeline: learners are resumed in turn, one updates at a time, and a failure ends only its own learner."""

import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from expgen.errors import FailedStorage, InputError, StorageError, TakenOver
from expgen.training.learner import Diverged, Phase
from expgen.training.pipeline import IDLE_SECONDS, LocalPermits, run_pipeline

COLLECT, READY, UPDATE, WAIT = Phase.COLLECT, Phase.READY, Phase.UPDATE, Phase.WAIT


def yield_phases(
    name: str, phases: list[Phase], log: list[tuple[str, Phase]], end: BaseException | None = None
) -> Iterator[Phase]:
    """Yield `phases`, appending each to `log`; then raise `end`."""
    for phase in phases:
        log.append((name, phase))
        yield phase
    if end:
        raise end


def run(log: list[tuple[str, Phase]], **phases: list[Phase]) -> dict[str, Exception]:
    return run_pipeline({name: yield_phases(name, list_, log) for name, list_ in phases.items()}, LocalPermits(1))


def test_pipeline_resumes_learners_in_turn() -> None:
    log: list[tuple[str, Phase]] = []
    assert run(log, a=[COLLECT] * 2, b=[COLLECT] * 3, c=[COLLECT]) == {}
    assert [name for name, _ in log] == ["a", "b", "c", "a", "b", "b"]


def test_one_learner_updates_while_the_others_collect() -> None:
    log: list[tuple[str, Phase]] = []
    round_of_work = [COLLECT, READY, UPDATE, UPDATE, UPDATE]
    work = [*round_of_work * 3, COLLECT]
    assert run(log, a=work, b=work, c=[COLLECT] * 20 + work) == {}
    assert len(log) == 3 * 16 + 20
    updating = None
    interleaved = 0
    for name, phase in log:
        if phase is UPDATE:
            assert updating in (None, name)
            updating = name
        elif name == updating:
            updating = None  # its next rollout has begun
        elif updating is not None:
            interleaved += 1
            assert phase is not UPDATE
    assert interleaved > 10


def test_learner_that_ends_during_its_update_releases_its_permit() -> None:
    log: list[tuple[str, Phase]] = []
    assert run(log, a=[READY, UPDATE], b=[READY, UPDATE, UPDATE]) == {}
    assert log[-2:] == [("b", UPDATE), ("b", UPDATE)]


def test_other_learners_continue_when_one_diverges(capsys: pytest.CaptureFixture[str]) -> None:
    log: list[tuple[str, Phase]] = []
    bad = yield_phases("a", [READY, UPDATE], log, Diverged("a diverged at 128 steps"))
    good = yield_phases("b", [COLLECT, READY, UPDATE, UPDATE, COLLECT], log)
    (error,) = run_pipeline({"a": bad, "b": good}, LocalPermits(1)).items()
    assert error[0] == "a" and isinstance(error[1], Diverged)
    assert [phase for name, phase in log if name == "b"] == [COLLECT, READY, UPDATE, UPDATE, COLLECT]
    assert capsys.readouterr().err == "expgen: a diverged at 128 steps\n"


@pytest.mark.parametrize(
    "end", [ZeroDivisionError(), InputError("an odd observation"), SystemExit(0), OSError(5, "EIO")]
)
def test_other_learners_continue_when_one_raises(end: BaseException) -> None:
    log: list[tuple[str, Phase]] = []
    learners = {"a": yield_phases("a", [COLLECT], [], end), "b": yield_phases("b", [COLLECT] * 5, log)}
    (failed,) = run_pipeline(learners, LocalPermits(1)).items()
    assert failed[0] == "a" and (failed[1] is end or str(failed[1]) == "the game exited (0)")
    assert len(log) == 5


@pytest.mark.parametrize(
    "end", [FailedStorage("disk full"), StorageError("read-only"), TakenOver(), KeyboardInterrupt()]
)
def test_storage_errors_and_interrupts_end_the_pipeline(end: BaseException) -> None:
    learners = {"a": yield_phases("a", [COLLECT], [], end), "b": yield_phases("b", [COLLECT] * 5, [])}
    with pytest.raises(type(end)):
        run_pipeline(learners, LocalPermits(1))


def test_pipeline_without_learners_returns_no_errors() -> None:
    assert run_pipeline({}, LocalPermits(1)) == {}


def test_pipeline_sleeps_when_all_learners_wait_for_the_device() -> None:
    began = time.monotonic()
    assert run([], a=[READY, UPDATE] + [WAIT] * 300, b=[COLLECT, READY]) == {}
    assert time.monotonic() - began >= 290 * IDLE_SECONDS


def test_pipeline_does_not_sleep_while_a_learner_collects(monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    monkeypatch.setattr("expgen.training.pipeline.time", SimpleNamespace(sleep=naps.append))
    assert run([], a=[READY, UPDATE] + [WAIT] * 200, b=[COLLECT] * 203) == {}
    assert not naps
    assert run([], a=[READY, UPDATE, WAIT], b=[READY]) == {}
    assert naps == [IDLE_SECONDS]
