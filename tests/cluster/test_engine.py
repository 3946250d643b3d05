"""LocalEngine and make_engine."""

import pytest

from expgen.cluster.engine import LocalEngine, Task, TaskResources, make_engine
from expgen.errors import InputError
from expgen.training.loop import Watcher


def test_local_engine_continues_after_an_error_and_stops_when_asked() -> None:
    ran: list[str] = []

    def work(name: str):
        def call(watcher: Watcher) -> str:
            ran.append(name)
            if name == "a":
                raise InputError("no")
            return name

        return call

    tasks = [Task(name, work(name)) for name in "abc"]
    ended = list(LocalEngine().run(tasks, Watcher(should_stop=lambda: "b" in ran)))
    assert ran == ["a", "b"] and ended[1].result() == "b"
    with pytest.raises(InputError):
        ended[0].result()


def test_cluster_flags_need_engine_ray() -> None:
    with pytest.raises(InputError, match="--engine ray"):
        make_engine("local", "auto")
    with pytest.raises(InputError, match="--engine ray"):
        make_engine("local", resources=TaskResources(cpus=1))
    assert isinstance(make_engine("local", resources=TaskResources()), LocalEngine)
    with pytest.raises(InputError, match="carrier"):
        make_engine("carrier-pigeon")
