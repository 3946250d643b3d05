"""Tasks on a real Ray cluster: the same rows and weights as locally, also after kills."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from expgen.cluster import ray_engine
from expgen.cluster.engine import Task, TaskResources
from expgen.cluster.ray_engine import RayEngine
from expgen.errors import InputError
from expgen.runs.folder import RunFolder
from expgen.storage.location import Location, is_url, join
from expgen.storage.mirror import Mirror
from expgen.storage.store import Store
from expgen.storage.view import fetch
from expgen.training.loop import Watcher
from tests.children import is_running
from tests.cluster import tiny
from tests.cluster.conftest import PATIENCE, LocalCluster, until, worker_of
from tests.policies import newest_checkpoint
from tests.storage.s3_server import BUCKET

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]  # one cluster for all
UPDATES = 800  # enough for a signal to arrive during the run on a fast machine


def engine_on(cluster: LocalCluster) -> RayEngine:
    return RayEngine(cluster.address, TaskResources(cpus=1))


def rows_in(file: Path) -> list[str]:
    """Return rows without the last column, the commit, which may change during the tests."""
    return [line.rpartition(",")[0] for line in file.read_text().splitlines()]


def weights_in(out: Path) -> dict[str, bytes]:
    """Return the tensors of the final checkpoints by path; the files also contain seconds, which differ."""
    found = {}
    for run in (out / "runs").iterdir():
        for learner in RunFolder(run).learners():
            tensors = newest_checkpoint(run, learner).tensors
            found |= {f"{run.name} {learner} {name}": tensor.numpy().tobytes() for name, tensor in tensors.items()}
    return found


@pytest.fixture(scope="module")
def reproduced_here(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("reproduced") / "local"
    assert tiny.main(str(out)) == 0
    return out


def at_work(cluster: LocalCluster, run: Location) -> int | None:
    """Return a process that works on a run, or on another run that has started."""
    if not is_url(run):
        return worker_of(Path(run))
    newest = Mirror(Store(str(run)), Path("unused")).newest()
    return next(iter(cluster.workers()), None) if newest is not None and newest.is_open else None


@pytest.mark.parametrize("kind", ["folder", "storage that is slow and refuses now and then"])
def test_reproduction_survives_lost_workers_and_nodes(kind, cluster, s3, reproduced_here, tmp_path: Path) -> None:
    out: Location = tmp_path / "ray" if kind == "folder" else f"s3://{BUCKET}/reproduction"
    s3.delay, s3.refused, s3.refusals = 0.01, 0.05, 0
    killed = []
    words = [sys.executable, "-m", "tests.cluster.tiny", str(out), cluster.address]
    driver = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        killed.append(until(lambda: at_work(cluster, join(out, "runs", "minimaze-ppo")), "a worker"))
        os.kill(killed[0], signal.SIGKILL)
        again = join(out, "runs", "minimaze-ppo")
        killed.append(until(lambda: (pid := at_work(cluster, again)) != killed[0] and pid, "a worker that resumes"))
        first = cluster.node_of(killed[1])  # while it works
        for index in (first, 1 - first):
            cluster.kill_node(index)
        output, err = driver.communicate(timeout=PATIENCE)
    finally:
        driver.kill()
        s3.delay = s3.refused = 0.0
    assert driver.returncode == 0, output + err
    assert err.count("lost") >= 2
    if is_url(out):
        assert s3.refusals > 0 and fetch(out, tmp_path / "ray")
    local, ray = (rows_in(place / "scores.csv") for place in (reproduced_here, tmp_path / "ray"))
    assert local == ray and len(local) > 6
    assert weights_in(reproduced_here) == weights_in(tmp_path / "ray")
    assert not any(map(is_running, killed)) and not list((tmp_path / "ray").rglob("*.part"))


@pytest.fixture(scope="module")
def undisturbed(small, tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    small.train(run, UPDATES, algo="ppo", eval_every=UPDATES * small.update_steps)
    return run


@pytest.fixture
def begin(cluster, small, process, tmp_path) -> Callable[[], object]:
    """Start `expgen train --engine ray`, always with the same run."""

    def start():
        place = {"engine": "ray", "address": cluster.address, "cpus_per_job": 1, "resume": True, "algo": "ppo"}
        flags = small.flags(tmp_path / "run", UPDATES, eval_every=UPDATES * small.update_steps, **place)
        return process(*flags)

    return start


def under_way(run: Path) -> int:
    """Return its worker once there is a checkpoint to resume from."""
    until(lambda: len(list(run.glob("checkpoints/*/*.safetensors"))) > 1, "a checkpoint")
    worker = worker_of(run)
    assert worker is not None
    return worker


def assert_same(small, equal, run: Path, other: Path) -> None:
    assert equal(small.state(run), small.state(other))
    assert rows_in(run / "scores.csv") == rows_in(other / "scores.csv")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_job_continues_after_its_worker_is_killed_or_terminated(
    number, begin, small, equal, undisturbed, tmp_path
) -> None:
    driver = begin()
    worker = under_way(tmp_path / "run")
    os.kill(worker, number)
    out, err = driver.communicate()
    assert driver.returncode == 0 and "lost" in err and "done" in out
    assert_same(small, equal, tmp_path / "run", undisturbed)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_job_resumes_after_the_driver_is_killed_or_terminated(
    number, begin, small, equal, undisturbed, tmp_path
) -> None:
    driver = begin()
    worker = under_way(tmp_path / "run")
    driver.send_signal(number)
    assert driver.wait() == (-9 if number == signal.SIGKILL else 128 + number)
    until(lambda: worker_of(tmp_path / "run") is None, "the worker to leave the run alone")
    if number == signal.SIGKILL:
        until(lambda: not is_running(worker), "the worker of a dead driver to end")
    again = begin()
    out, _ = again.communicate()
    assert again.returncode == 0 and "done" in out
    assert_same(small, equal, tmp_path / "run", undisturbed)


def test_evaluate_on_ray_gives_the_same_rows_as_local(cluster, command, undisturbed, tmp_path) -> None:
    flags = ["evaluate", undisturbed, "--episodes", "4", "--envs", "2", "--scores"]
    assert command(*flags, tmp_path / "local.csv").status == 0
    place = ["--engine", "ray", "--address", cluster.address, "--cpus-per-job", "1"]
    assert command(*flags, tmp_path / "ray.csv", *place).status == 0
    assert rows_in(tmp_path / "local.csv") == rows_in(tmp_path / "ray.csv")


def fail(watcher: Watcher) -> None:
    raise InputError("--levels is -1; accepted: more")


def die(watcher: Watcher) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fine(watcher: Watcher) -> str:
    return "fine"


def test_ray_task_errors_are_returned_and_other_tasks_continue(cluster, monkeypatch) -> None:
    monkeypatch.setattr(ray_engine, "MAX_LOSSES", 2)
    tasks = [Task("bad", fail), Task("deadly", die), Task("late", fine, after=("bad", "elsewhere"))]
    ended = {ended.task.name: ended for ended in engine_on(cluster).run(tasks, Watcher())}
    assert ended["late"].result() == "fine"
    with pytest.raises(InputError, match="--levels is -1"):
        ended["bad"].result()
    with pytest.raises(RuntimeError, match="lost 2 times without a new checkpoint"):
        ended["deadly"].result()


def test_ray_rejects_resources_that_no_node_has(cluster, refused, tmp_path) -> None:
    place = ["--engine", "ray", "--address", cluster.address, "--run", tmp_path / "run"]
    assert "--cpus-per-job is 64; accepted" in refused("train", *place, "--cpus-per-job", "64")
    assert "--gpus-per-job is 1; accepted" in refused("train", *place, "--gpus-per-job", "1")
    assert not (tmp_path / "run").exists()


def gpus_seen(together: Path, name: str, count: int, watcher: Watcher) -> str:
    """Return the devices that this task may use, once `count` tasks are running."""
    (together / name).touch()
    until(lambda: len(list(together.iterdir())) >= count, "the other task")
    return os.environ["CUDA_VISIBLE_DEVICES"]


def test_ray_tasks_see_only_their_reserved_gpus(cluster, tmp_path: Path) -> None:
    expected = {0.5: [{"0"}, {"1"}], 1: [{"0", "1"}], 0: [{""}]}  # each task sees one GPU, as cuda:0
    with cluster.more(num_cpus=2, num_gpus=2):
        for gpus, accepted in expected.items():
            together = tmp_path / str(gpus)
            together.mkdir()
            tasks = [Task(name, partial(gpus_seen, together, name, 2)) for name in ("one", "other")]
            engine = RayEngine(cluster.address, TaskResources(cpus=1, gpus=gpus))
            assert {ended.result() for ended in engine.run(tasks, Watcher())} in accepted


LISTENING = """
import sys
from expgen.cluster.ray_engine import _connected
from tests.policies import newest_checkpoint

with _connected(None) as ray:
    import psutil  # installed with Ray

    ray.get(ray.remote(lambda: 1).remote())
    ours = psutil.Process()
    for process in (ours, *ours.children(recursive=True)):
        for connection in process.net_connections(kind="inet"):
            if connection.status == psutil.CONN_LISTEN:
                print(connection.laddr.ip)
"""


@pytest.mark.slow
def test_local_ray_cluster_listens_on_loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    done = subprocess.run([sys.executable, "-c", LISTENING], capture_output=True, text=True, timeout=PATIENCE)
    addresses = done.stdout.split()
    assert len(addresses) >= 4 and {address.removeprefix("::ffff:") for address in addresses} == {"127.0.0.1"}, done
