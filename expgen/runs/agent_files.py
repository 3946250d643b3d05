"""agent.json in and out: written beside a run's policies, composed by hand of several runs', made up for old runs."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from expgen.agents.consensus import ConsensusConfig
from expgen.agents.description import (
    AGENT_FILE,
    EXPLORER,
    AgentDescription,
    PolicyDescription,
    agent_text,
    plain,
)
from expgen.algorithms.recipes import recipe_of
from expgen.envs.levels import LevelSet
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.files import join_inside, read_bytes, read_json, write_whole
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.plan import LearnerPlan, plans_of
from expgen.settings import filled
from expgen.training.average import Weights


def describe_run(
    folder: Path,
    config: TrainConfig,
    spec: EnvSpec,
    plans: Sequence[LearnerPlan],
    consensus: ConsensusConfig | None,
) -> AgentDescription:
    """The agent of a run whose learners are `plans`, voting by `consensus`.

    It plays with averaged weights where its explorers keep any: theirs generalise better.
    """
    policies = {plan.name: describe_policy(plan) for plan in plans}
    explorers = tuple(policies.pop(plan.name) for plan in plans if plan.name.startswith(EXPLORER))
    test = LevelSet.parse(config.test_levels, "--test-levels")
    where = (config.env, config.options, spec, config.train_set, test)
    weights: Weights = "average" if any(plan.average for plan in plans if plan.name.startswith(EXPLORER)) else "live"
    members = tuple(policies.values())
    return AgentDescription(folder, config.algo, config.seed, *where, members, explorers, consensus, weights)


def agent_of_run(
    folder: RunFolder,
    config: TrainConfig,
    spec: EnvSpec,
    plans: Sequence[LearnerPlan],
    consensus: ConsensusConfig | None,
) -> AgentDescription:
    """As `describe_run`; of a run that goes on, its agent keeps what training has no say in."""
    agent = describe_run(folder.path, config, spec, plans, consensus)
    if not folder.exists():
        return agent
    before = read_agent(folder.path)
    return replace(agent, weights=before.weights, tuned=before.tuned if before.consensus == consensus else ())


def describe_policy(plan: LearnerPlan) -> PolicyDescription:
    """What a learner's policy is, in its run folder."""
    what = (plan.network, plan.algorithm, plan.reward)
    return PolicyDescription(f"checkpoints/{plan.name}", plan.algo, plan.seed, plan.levels, *what)


def write_agent(agent: AgentDescription, file: Path | None = None) -> None:
    """Write the agent into `file`, by default agent.json of its folder."""
    write_whole(file or agent.folder / AGENT_FILE, agent_text(agent).encode())


def read_agent(place: Path) -> AgentDescription:
    """The agent of a run folder, of a bundle, or in a file that describes one.

    Of a policy the file may name the path alone; the rest is then what the run folder says that the path lies in. So
    may a file leave out all else: the environment is that of the first member, training levels are those of all
    policies, and ensembles vote as ConsensusConfig's defaults say.
    """
    file = place if place.is_file() else place / AGENT_FILE
    if not file.exists():
        return _agent_of_old_run(RunFolder(place))
    data = _json(file)
    try:
        complete = _completed(file.parent, data)
        return AgentDescription.from_json(file.parent, complete)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file} lacks {error}; accepted: an {AGENT_FILE} as docs/agents.md shows") from None
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def _json(file: Path) -> Any:
    try:
        data = read_json(file)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    if not isinstance(data, dict):
        raise InputError(f"{file} is no description of an agent; accepted: an {AGENT_FILE} as docs/agents.md shows")
    return data


def _completed(folder: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says, with what it leaves to the runs that its policies come from."""
    runs: dict[Path, AgentDescription] = {}
    data = dict(data)
    if "explorer" in data:  # earlier versions knew but one
        data["explorers"] = [data["explorer"]] if data["explorer"] else []
        del data["explorer"]
    given = data.get("members", []) if data.get("explorers") else data["members"]
    members, explorers = (
        [_completed_policy(folder, policy, runs) for policy in policies]
        for policies in (given, data.get("explorers", ()))
    )
    if not runs:  # every policy is described in full, so all else is too
        return data
    first = next(iter(runs.values()))
    for run in runs.values():
        if (run.env, dict(run.options), run.spec) != (first.env, dict(first.options), first.spec):
            raise InputError(f"{run.folder} plays {run.env}; accepted: policies of {first.env} with these options")
    sets = [LevelSet.parse(str(policy["levels"])) for policy in (*members, *explorers)]
    base = plain(replace(first, members=(), explorers=(), levels=union(sets), tuned=(), consensus=None))
    base |= _kind([str(member["algo"]) for member in members], len(explorers))
    return {**base, **data, "members": members, "explorers": explorers}


def _kind(members: Sequence[str], num_explorers: int) -> dict[str, Any]:
    """Of what algorithm an agent is whose file does not say so, and whether its policies play together."""
    if len(members) + num_explorers == 1 and members:
        return {"algo": members[0], "consensus": None}
    member = next(iter(members), None)
    algo = "openend" if member is None else "expgen" if member == "ppo" else f"expgen-{member}"
    return {"algo": algo, "consensus": {}}


def _completed_policy(folder: Path, data: Mapping[str, Any], runs: dict[Path, AgentDescription]) -> dict[str, Any]:
    """One policy in full; `runs` are those that were read for it and before."""
    path = str(data["path"])
    if "algo" in data:
        return dict(data)
    where = join_inside(folder, path)
    run = where.parent.parent
    if run not in runs:
        if not ((run / AGENT_FILE).exists() or RunFolder(run).exists()):
            raise InputError(f"path is {path!r}; accepted: RUN/checkpoints/LEARNER, where RUN is a run folder")
        runs[run] = read_agent(run)
    found = [p for name, p in runs[run].policies.items() if runs[run].checkpoints_of(name) == where]
    if not found:
        names = ", ".join(runs[run].policies)
        raise InputError(f"path is {path!r}, which {run} does not have; accepted: {names} of its checkpoints")
    return {**plain(found[0]), **data}


def union(sets: Sequence[LevelSet]) -> LevelSet:
    """Levels that are in any of `sets`."""
    if any(levels.seeds is None for levels in sets):
        return LevelSet(None)
    if len(set(sets)) == 1:
        return sets[0]
    return LevelSet(tuple(sorted({level for levels in sets for level in levels.seeds or ()})))


def _agent_of_old_run(folder: RunFolder) -> AgentDescription:
    """Of a run from before agent.json: its config.json says how its ensemble votes, tune.csv what was picked since."""
    config, spec, votes = folder.read_old_config()
    plans = plans_of(config)
    if folder.old_adopted_file.exists():  # policies that came from other runs, with seeds and levels of their own
        adopted = _json(folder.old_adopted_file)
        own = {name: {"seed": it["seed"], "levels": LevelSet.parse(it["levels"])} for name, it in adopted.items()}
        plans = [replace(plan, **own.get(plan.name, {})) for plan in plans]
    agent = describe_run(folder.path, config, spec, plans, None)
    if recipe_of(config.algo).explorer is None:
        return agent
    consensus = filled(ConsensusConfig(), votes, "consensus")
    picked = _picked(folder.tune_file) if folder.tune_file.exists() else {}
    if picked.pop("members", len(agent.members)) != len(agent.members):
        picked = {}
    return replace(agent, consensus=replace(consensus, **picked), tuned=tuple(picked))


def _picked(file: Path) -> dict[str, Any]:
    """The settings that tune.csv has picked, and of how many members."""
    try:
        rows = csv.DictReader(read_bytes(file).decode().splitlines())
        row = next(row for row in rows if row["picked"] == "1")
        return {"min_agree": int(row["min_agree"]), "alpha": float(row["alpha"]), "members": int(row["members"])}
    except (OSError, StopIteration, KeyError, TypeError, ValueError):
        raise InputError(f"{file} is damaged; accepted: a file that expgen tune wrote") from None
