"""The jobs of the paper's tables and figures."""

import pytest

from expgen.algorithms.recipes import RECIPES
from expgen.paper import numbers
from expgen.paper.exhibits import EXHIBITS
from expgen.reproduce.job import Job, Scoring, merged
from expgen.reproduce.jobs import jobs_of
from expgen.reproduce.scale import SCALES
from expgen.runs.make_config import make_config

RIVALS = {"daac", "idaac", "ppg", "plr", "ucb-drac", "leep", "expgen-idaac"}
WITHOUT_RUNS = {"figure-1", "figure-8", "table-3", "table-6"}


@pytest.mark.parametrize("scale", SCALES)
def test_every_exhibit_has_jobs_with_unique_names(scale):
    for name in EXHIBITS:
        jobs = jobs_of([name], SCALES[scale])
        assert bool(jobs) == (name not in WITHOUT_RUNS), name
        assert len({job.name for job in jobs}) == len(jobs)
        assert {job.algo for job in jobs} <= RECIPES.keys() | RIVALS


@pytest.mark.parametrize("scale", SCALES)
def test_job_configs_are_valid_and_dependencies_come_first(scale):
    seen = {}
    for job in jobs_of(EXHIBITS, SCALES[scale]):
        if job.algo not in RECIPES:
            continue
        config = make_config(job.env, job.algo, job.preset, **job.settings)
        seen[job.name] = config
        for name in job.after:
            assert (seen[name].env, seen[name].envs) == (config.env, config.envs)
            part = config.explorer if seen[name].algo == "maxent" else config
            assert (part.network, part.reward) == (seen[name].network, seen[name].reward)
            assert part.steps >= seen[name].steps  # the job trains the rest


def test_paper_scale_has_the_paper_s_sizes():
    jobs = {job.name: job for job in jobs_of(["table-1"], SCALES["paper"])}
    assert {job.env for job in jobs.values()} == {f"procgen:{game}" for game in numbers.games()}
    ppo = jobs["maze-ppo"]
    assert (ppo.settings["members"], ppo.settings["steps"], ppo.episodes) == (10, 25_000_000, 1000)
    assert jobs["maze-maxent"].settings["steps"] == 100_000_000
    assert [scoring.consensus["leader"] for scoring in jobs["maze-expgen"].scorings] == list(range(10))
    assert {f"maze-{algo}" for algo in ("plr", "ucb-drac", "ppg", "leep", "expgen-idaac")} <= jobs.keys()


def test_paper_scale_has_all_variants():
    labels = {job.label for job in jobs_of(["figure-5"], SCALES["paper"]) if job.algo == "mixed"}
    assert len(labels) == 15 and "beta=0.1 gamma=0.5" in labels
    explorers = [job for job in jobs_of(["figure-11"], SCALES["paper"], ["maze"]) if job.algo == "maxent"]
    assert {job.settings.get("levels", "200") for job in explorers} == {"200", "500", "1000", "5000"}
    assert {job.settings.get("memory", "gru") for job in explorers} == {"gru", "none"}
    ranks = {
        job.settings.get("neighbor_rank", 2) for job in jobs_of(["table-7"], SCALES["paper"]) if job.algo == "maxent"
    }
    assert ranks == set(range(1, 11))
    (hidden,) = jobs_of(["figure-9"], SCALES["paper"])
    assert (hidden.settings["levels"], hidden.settings["options"]) == ("128", {"hidden": True})
    assert jobs_of(["figure-13"], SCALES["paper"])[0].settings["steps"] == 100_000_000


def test_jobs_of_uses_selected_games_only():
    assert {job.env for job in jobs_of(["table-1"], SCALES["paper"], ["heist"])} == {"procgen:heist"}


def test_exhibits_share_runs_of_one_name():
    one, other = (jobs_of([name], SCALES["laptop"]) for name in ("table-1", "table-10"))
    both = jobs_of(["table-1", "table-10"], SCALES["laptop"])
    shared = {job.name for job in one} & {job.name for job in other}
    assert {"minimaze-ppo", "minimaze-maxent", "minimaze-expgen", "minimaze-leep"} <= shared
    assert len(both) == len(one) + len(other) - len(shared)


def test_merged_keeps_all_scorings():
    job = Job("a", "minimaze", "expgen", "smoke", {}, scorings=(Scoring(), Scoring(consensus={"leader": 1})))
    more = Job("a", "minimaze", "expgen", "smoke", {}, scorings=(Scoring(), Scoring("each")))
    (found,) = merged([job, more])
    assert [scoring.name for scoring in found.scorings] == ["agent", "agent-leader1", "each"]


def test_thinned_values_keep_first_and_last():
    assert SCALES["smoke"].thinned((1, 2, 3, 4)) == [1, 4]
    assert SCALES["laptop"].thinned((0.1, 0.3, 0.5, 0.7, 0.9)) == [0.1, 0.5, 0.9]
    assert SCALES["laptop"].sizes((4, 6, 8, 10)) == [2, 3, 4, 5]
    assert SCALES["laptop"].quorums((1, 2, 4, 6, 8, 10)) == [1, 2, 3, 4, 5]
    assert SCALES["paper"].quorums((1, 2, 4, 6, 8)) == [1, 2, 4, 6, 8]
