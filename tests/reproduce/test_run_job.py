"""run_job, from training to rows, and reproduce, from jobs to the report."""

import csv
import dataclasses
import json

import pytest

from expgen.errors import InputError
from expgen.evaluation.scores import read_scores
from expgen.exploration.rows import FILE as EXPLORATION
from expgen.reproduce.job import Job, Scoring
from expgen.reproduce.planner import Planner
from expgen.reproduce.reproduce import reproduce
from expgen.reproduce.run_job import explored_file, made_file, run_job, score_files
from expgen.reproduce.scale import SCALES
from expgen.runs.agent_files import read_agent
from expgen.runs.folder import RunFolder
from expgen.runs.journal import read_journal, write_journal
from expgen.training.loop import Watcher
from tests.cluster.tiny import TINY


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Jobs of members, explorer and the agent made of both."""
    out = tmp_path_factory.mktemp("out")
    planner = Planner(TINY)
    scorings = (Scoring(consensus={"leader": 1}), Scoring(consensus={"leader": 0, "fallback": "random"}))
    jobs = planner.expgen("maze", scorings, label="distance=l0", distance="l0")
    return out, jobs, [run_job(job, out, "expgen reproduce x", "cpu") for job in jobs]


def rows_of(job, out):
    return [row for file in score_files(job, out) for row in read_scores(file)]


def test_jobs_of_members_explorer_and_agent_write_their_rows(trained):
    out, (ppo, explorer, agent), results = trained
    assert [result.status for result in results] == ["done"] * 3
    finals = [row for row in rows_of(ppo, out) if row.ci_low == row.ci_low]
    assert {(row.algorithm, row.seed, row.split, row.agent) for row in finals} == {
        ("ppo", seed, split, f"member{seed}") for seed in (0, 1) for split in ("train", "test")
    }
    assert {(row.agent, row.settings) for row in rows_of(explorer, out)} == {("member0", "distance=l0")}
    found = [row for file in score_files(explorer, out) for row in EXPLORATION.rows_so_far(explored_file(file))]
    assert [(row.agent, row.split, row.settings) for row in found] == [
        ("member0", "train", "distance=l0"), ("member0", "test", "distance=l0")]  # fmt: skip
    assert all(row.intrinsic_return > 0 and 0 <= row.oracle_share <= 1 for row in found)
    assert {(row.agent, row.settings) for row in rows_of(agent, out)} == {
        ("expgen", "leader=1 members=2 distance=l0"),
        ("expgen", "leader=0 fallback=random members=2 distance=l0"),
    }


def test_an_agent_is_composed_of_the_checkpoints_of_other_jobs(trained):
    out, (ppo, explorer, job), _ = trained
    agent = read_agent(out / "runs" / f"{job.name}.json")
    paths = [f"{ppo.name}/checkpoints/member0", f"{ppo.name}/checkpoints/member1"]
    assert [member.path for member in agent.members] == paths
    assert agent.explorers[0].path == f"{explorer.name}/checkpoints/member0"
    assert (agent.algo, agent.explorers[0].algo) == ("expgen", "maxent")
    assert agent.trained() == ["member0", "member1", "explorer"]
    folder = RunFolder(out / "runs" / job.name)
    assert [path.name for path in folder.path.iterdir()] == ["journal.json"]  # nothing was trained
    assert [(entry.work, entry.state) for entry in read_journal(folder)] == [("score", "done")]


def test_finished_job_is_skipped_and_new_scorings_are_added(trained):
    out, jobs, _ = trained
    before = {file: file.read_bytes() for job in jobs for file in score_files(job, out)}
    assert [run_job(job, out, "", "cpu").status for job in jobs] == ["skipped"] * 3
    more = dataclasses.replace(jobs[2], scorings=(*jobs[2].scorings, Scoring("member0")))
    assert run_job(more, out, "", "cpu").status == "done"
    assert {file: file.read_bytes() for file in before} == before
    assert score_files(more, out)[-1].exists()


def test_stopped_job_resumes(tmp_path):
    job = Planner(dataclasses.replace(TINY, steps=4096)).train("maze", "ppo")
    rows = []
    watcher = Watcher(on_row=lambda learner, row: rows.append(row), should_stop=lambda: bool(rows))
    stopped = run_job(job, tmp_path, "", "cpu", watcher)
    assert stopped.status == "stopped" and not score_files(job, tmp_path)[-1].exists()
    seen = []
    watcher = Watcher(on_start=lambda total, done: seen.append(sum(done.values())))
    assert run_job(job, tmp_path, "", "cpu", watcher).status == "done"
    assert seen[0] > 0


def minutes_of(job, out):
    return float(json.loads(made_file(job, out).read_text())["minutes"])


def test_minutes_of_a_job_include_all_sessions(tmp_path):
    job = Planner(TINY).train("maze", "ppo")
    assert run_job(job, tmp_path, "", "cpu", Watcher(should_stop=lambda: True)).status == "stopped"
    folder = RunFolder(tmp_path / "runs" / job.name)
    (entry,) = read_journal(folder)
    assert (entry.work, entry.state) == ("train", "stopped") and 0 < entry.session.seconds < 600
    hour = entry.session._replace(began=1.0, seconds=3600.0)  # an earlier session of one hour
    write_journal(folder, [dataclasses.replace(entry, session=hour), entry])
    for scorings in (job.scorings, (*job.scorings, Scoring("member0"))):  # later scorings are added
        assert run_job(dataclasses.replace(job, scorings=scorings), tmp_path, "", "cpu").status == "done"
        assert 60 <= minutes_of(job, tmp_path) < 70
    assert [entry.work for entry in read_journal(folder)] == ["train", "train", *["train", "score"] * 2]


def test_continued_run_equals_one_long_run(tmp_path, equal, small):
    planner = Planner(TINY)
    usual, longer = planner.longer(planner.ppo("maze"), "50M")
    assert [run_job(job, tmp_path, "", "cpu").status for job in (usual, longer)] == ["done"] * 2
    whole = dataclasses.replace(longer, name="whole", continues="")
    assert run_job(whole, tmp_path, "", "cpu").status == "done"
    for member in ("member0", "member1"):
        mine, theirs = (small.state(tmp_path / "runs" / job.name, member) for job in (longer, whole))
        assert equal(mine, theirs)
    assert {row.env_steps for row in rows_of(longer, tmp_path)} == {2048}


def test_job_with_bad_input_is_refused_in_one_line(tmp_path):
    result = run_job(Job("x", "minimaze", "no-such", "smoke", {}), tmp_path, "", "cpu")
    assert result.status == "refused" and "--algo is 'no-such'" in result.message and "\n" not in result.message
    for changes in ({"continues": "nobody"}, {"name": "composed", "made_of": ("nobody",)}):
        orphan = dataclasses.replace(Planner(TINY).train("maze", "ppo"), **changes)
        assert "nobody" in (message := run_job(orphan, tmp_path, "", "cpu").message)
        (entry,) = read_journal(RunFolder(tmp_path / "runs" / orphan.name))  # read by expgen status
        assert (entry.state, entry.message) == ("failed", message)


def test_reproduction_writes_its_page_with_provenance(tmp_path):
    page, complaints = reproduce(["figure-3", "table-3", "table-6"], TINY, tmp_path, device="cpu")
    assert page is not None and complaints == []
    text = page.read_text()
    for part in ("Figure 3", "Table 3", "Table 6", "Score rows", "expgen reproduce figure-3"):
        assert part in text
    with open(tmp_path / "provenance.csv", newline="") as file:
        made = list(csv.DictReader(file))
    assert len(made) == len(read_scores(tmp_path / "scores.csv")) and len(made[0]["config"]) == 12
    assert (tmp_path / "figures" / "figure-3.png").exists()


def test_reproduction_rejects_another_scale_in_the_same_folder(tmp_path):
    reproduce(["table-3"], TINY, tmp_path)
    with pytest.raises(InputError, match="--scale smoke"):
        reproduce(["table-3"], SCALES["laptop"], tmp_path)
