"""Learners take turns: round robin, one update at a time, and one that diverges leaves the others alone."""

import time
from collections.abc import Iterator

import pytest

from expgen.errors import FailedStorage, InputError, StorageError, TakenOver
from expgen.training.learner import Diverged, Phase
from expgen.training.pipeline import REST_SECONDS, OwnPermits, Turn, run_side_by_side

COLLECT, READY, UPDATE, WAIT = Phase.COLLECT, Phase.READY, Phase.UPDATE, Phase.WAIT


def life(
    name: str, phases: list[Phase], log: list[tuple[str, Phase]], end: BaseException | None = None
) -> Iterator[Phase]:
    """Goes through `phases`, noting each as it is entered."""
    for phase in phases:
        log.append((name, phase))
        yield phase
    if end:
        raise end


def run(log: list[tuple[str, Phase]], **phases: list[Phase]) -> dict[str, Exception]:
    return run_side_by_side([Turn(name, life(name, list_, log)) for name, list_ in phases.items()], OwnPermits(1))


def test_pipeline_resumes_learners_in_turn() -> None:
    log: list[tuple[str, Phase]] = []
    assert run(log, a=[COLLECT] * 2, b=[COLLECT] * 3, c=[COLLECT]) == {}
    assert [name for name, _ in log] == ["a", "b", "c", "a", "b", "b"]


def test_one_updates_at_a_time_while_the_others_collect() -> None:
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
            updating = None  # it has gone on to its next rollout
        elif updating is not None:
            interleaved += 1
            assert phase is not UPDATE
    assert interleaved > 10


def test_a_learner_that_ends_in_its_update_frees_the_device() -> None:
    log: list[tuple[str, Phase]] = []
    assert run(log, a=[READY, UPDATE], b=[READY, UPDATE, UPDATE]) == {}
    assert log[-2:] == [("b", UPDATE), ("b", UPDATE)]


def test_one_that_diverges_leaves_the_others_alone(capsys: pytest.CaptureFixture[str]) -> None:
    log: list[tuple[str, Phase]] = []
    bad = life("a", [READY, UPDATE], log, Diverged("a diverged at 128 steps"))
    good = life("b", [COLLECT, READY, UPDATE, UPDATE, COLLECT], log)
    (error,) = run_side_by_side([Turn("a", bad), Turn("b", good)], OwnPermits(1)).items()
    assert error[0] == "a" and isinstance(error[1], Diverged)
    assert [phase for name, phase in log if name == "b"] == [COLLECT, READY, UPDATE, UPDATE, COLLECT]
    assert capsys.readouterr().err == "expgen: a diverged at 128 steps\n"


@pytest.mark.parametrize(
    "end", [ZeroDivisionError(), InputError("an odd observation"), SystemExit(0), OSError(5, "EIO")]
)
def test_one_whose_game_fails_leaves_the_others_alone(end: BaseException) -> None:
    log: list[tuple[str, Phase]] = []
    turns = [Turn("a", life("a", [COLLECT], [], end)), Turn("b", life("b", [COLLECT] * 5, log))]
    (failed,) = run_side_by_side(turns, OwnPermits(1)).items()
    assert failed[0] == "a" and (failed[1] is end or str(failed[1]) == "the game exited (0)")
    assert len(log) == 5


@pytest.mark.parametrize(
    "end", [FailedStorage("disk full"), StorageError("read-only"), TakenOver(), KeyboardInterrupt()]
)
def test_what_concerns_the_whole_run_ends_it(end: BaseException) -> None:
    turns = [Turn("a", life("a", [COLLECT], [], end)), Turn("b", life("b", [COLLECT] * 5, []))]
    with pytest.raises(type(end)):
        run_side_by_side(turns, OwnPermits(1))


def test_pipeline_without_learners_ends_at_once() -> None:
    assert run_side_by_side([], OwnPermits(1)) == {}


def test_the_host_rests_while_all_wait_for_the_device() -> None:
    began = time.monotonic()
    assert run([], a=[READY, UPDATE] + [WAIT] * 300, b=[COLLECT, READY]) == {}
    assert time.monotonic() - began >= 290 * REST_SECONDS


def test_nobody_rests_while_one_plays() -> None:
    began = time.process_time()
    assert run([], a=[READY, UPDATE] + [WAIT] * 200, b=[COLLECT] * 203) == {}
    assert time.process_time() - began < 200 * REST_SECONDS
