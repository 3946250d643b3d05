"""Engines without a cluster."""

import pytest

from expgen.cluster.engine import LocalEngine, Task, TaskResources, make_engine
from expgen.errors import InputError
from expgen.training.loop import Watcher


def test_the_local_engine_goes_on_after_an_error_and_ends_at_a_stop() -> None:
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


def test_flags_of_a_cluster_need_one() -> None:
    with pytest.raises(InputError, match="--engine ray"):
        make_engine("local", "auto")
    with pytest.raises(InputError, match="--engine ray"):
        make_engine("local", share=TaskResources(cpus=1))
    assert isinstance(make_engine("local", share=TaskResources()), LocalEngine)
    with pytest.raises(InputError, match="carrier"):
        make_engine("carrier-pigeon")
