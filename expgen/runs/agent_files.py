"""Reading and writing agent.json: of a run, composed by hand from several runs, or derived for old runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from expgen.agents.consensus import ConsensusConfig
from expgen.agents.description import AGENT_FILE, AgentDescription, agent_text, to_json
from expgen.agents.temperature import AS_TRAINED
from expgen.envs.levels import LevelSet
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.files import join_inside, read_json, write_atomic
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder, parsing
from expgen.runs.plan import plans_of
from expgen.settings import check_type, config_from_values
from expgen.training.average import Weights


def describe_run(
    folder: Path, config: TrainConfig, spec: EnvSpec, consensus: ConsensusConfig | None
) -> AgentDescription:
    """Return the agent of a run that votes by `consensus`.

    It plays with averaged weights if its explorers have them, since these generalise better.
    """
    plans = plans_of(config)
    members = tuple(plan.policy for plan in plans if not plan.is_explorer)
    explorers = tuple(plan.policy for plan in plans if plan.is_explorer)
    weights: Weights = "average" if any(plan.average for plan in plans if plan.is_explorer) else "live"
    return AgentDescription(
        folder=folder,
        algo=config.algo,
        seed=config.seed,
        env=config.env,
        options=config.options,
        spec=spec,
        levels=config.train_set,
        test_levels=LevelSet.parse(config.test_levels, "--test-levels"),
        members=members,
        explorers=explorers,
        consensus=consensus,
        weights=weights,
    )


def write_agent(agent: AgentDescription, file: Path | None = None) -> None:
    """Write the agent to `file`, by default the agent.json of its folder."""
    write_atomic(file or agent.folder / AGENT_FILE, agent_text(agent).encode())


def read_agent(path: Path) -> AgentDescription:
    """Read the agent of a run folder, a bundle or a file.

    A file may give only the path of a policy; the rest is read from the run folder of that path. The other fields are
    optional then: the environment is that of the first member, the training levels are the union over the policies, and
    an ensemble votes by ConsensusConfig's defaults.
    """
    file = path if path.is_file() else path / AGENT_FILE
    if not file.exists():
        return _agent_of_old_run(RunFolder(path))
    accepted = f"an {AGENT_FILE} as docs/agents.md shows"
    try:
        data = read_json(file)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    if not isinstance(data, dict):
        raise InputError(f"{file} does not describe an agent; accepted: {accepted}")
    with parsing(file, accepted):
        return AgentDescription.from_json(file.parent, _completed(file, data))


def _completed(file: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of `file` with missing fields filled in from the runs of its policies."""
    runs: dict[Path, AgentDescription] = {}
    data = dict(data)
    if "explorer" in data:  # earlier versions had one explorer
        explorer = data.pop("explorer")
        data["explorers"] = [explorer] if explorer else []
    given = data.get("members", []) if data.get("explorers") else data["members"]
    members = [_completed_policy(file, policy, runs) for policy in given]
    explorers = [_completed_policy(file, policy, runs) for policy in data.get("explorers", ())]
    if not runs:  # the file describes every policy, so it must have the other fields too
        return data
    first = next(iter(runs.values()))
    for run in runs.values():
        if (run.env, dict(run.options), run.spec) != (first.env, dict(first.options), first.spec):
            raise InputError(f"{run.folder} plays {run.env}; accepted: policies of {first.env} with these options")
    sets = [LevelSet.parse(str(policy["levels"])) for policy in (*members, *explorers)]
    emptied: dict[str, Any] = {
        "members": (), "explorers": (), "tuned": (), "consensus": None, "temperature": AS_TRAINED,
        "explorer_temperature": None,
    }  # fmt: skip
    base = to_json(replace(first, **emptied, levels=union(sets)))
    base |= _kind([str(member["algo"]) for member in members], len(explorers))
    return {**base, **data, "members": members, "explorers": explorers}


def _kind(members: Sequence[str], num_explorers: int) -> dict[str, Any]:
    """Return the algorithm of an agent whose file omits it, and whether its policies vote."""
    if len(members) + num_explorers == 1 and members:
        return {"algo": members[0], "consensus": None}
    member = next(iter(members), None)
    algo = "openend" if member is None else "expgen" if member == "ppo" else f"expgen-{member}"
    return {"algo": algo, "consensus": {}}


def _completed_policy(file: Path, data: Mapping[str, Any], runs: dict[Path, AgentDescription]) -> dict[str, Any]:
    """Return a policy of `file` with missing fields filled in; `runs` caches the runs that were read."""
    check_type("a policy", data, Mapping, "an object with its path")
    path = str(data["path"])
    if "algo" in data:
        return dict(data)
    where = join_inside(file.parent, path)
    run = where.parent.parent
    if run not in runs:
        is_described = run / AGENT_FILE != file and (run / AGENT_FILE).exists()  # else use the run's config
        if file.parent not in (run, *run.parents) or not (is_described or RunFolder(run).exists()):
            raise InputError(f"path is {path!r}; accepted: RUN/checkpoints/LEARNER, where RUN is a run folder")
        runs[run] = read_agent(run) if is_described else _agent_of_old_run(RunFolder(run))
    found = [p for name, p in runs[run].policies.items() if runs[run].checkpoints_of(name) == where]
    if not found:
        names = ", ".join(runs[run].policies)
        raise InputError(f"path is {path!r}, which {run} does not have; accepted: checkpoints of {names}")
    return {**to_json(found[0]), **data}


def union(sets: Sequence[LevelSet]) -> LevelSet:
    """Return the levels that are in any of `sets`."""
    if any(levels.seeds is None for levels in sets):
        return LevelSet(None)
    if len(set(sets)) == 1:
        return sets[0]
    return LevelSet(tuple(sorted({level for levels in sets for level in levels.seeds or ()})))


def _agent_of_old_run(folder: RunFolder) -> AgentDescription:
    """Return the agent of a run without agent.json; earlier versions kept the voting settings in config.json."""
    config, spec = folder.read_config()
    votes = read_json(folder.config_file)["train"].get("consensus") or {}
    consensus = config_from_values(ConsensusConfig(), votes, "consensus") if config.explorer is not None else None
    return describe_run(folder.path, config, spec, consensus)
