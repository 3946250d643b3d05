"""A run folder: config.json, agent.json, metrics.csv, tensorboard/, checkpoints/LEARNER/, scores.csv, and more."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

from expgen.agents.description import AGENT_FILE
from expgen.agents.policies import CARD
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError, write_error
from expgen.files import delete_partial_files, join_inside, read_json, write_atomic
from expgen.runs.config import TrainConfig

OWN_NAMES = ("*.json", "*.csv", "*.log", "checkpoints", "scoring", "tensorboard")  # files and folders that a run writes


@contextlib.contextmanager
def parsing(file: Path, accepted: str) -> Iterator[None]:
    """Turn errors in the content of `file` into InputErrors that name the file and what is `accepted`."""
    try:
        yield
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file} lacks {error}; accepted: {accepted}") from None
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


class RunFolder:
    """The paths of a run's files; reads and writes its config."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.config_file = self.path / "config.json"
        self.agent_file = self.path / AGENT_FILE
        self.metrics_file = self.path / "metrics.csv"
        self.scores_file = self.path / "scores.csv"
        self.journal_file = self.path / "journal.json"
        self.failures_file = self.path / "failures.log"
        self.card_file = self.path / CARD
        self.tune_file = self.path / "tune.csv"
        self.events_folder = self.path / "tensorboard"
        self.new_vote_file = self.path / "scoring" / "new-vote"  # empty; the ensemble is not yet scored as it now votes

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    def exists(self) -> bool:
        """Whether the folder holds a run."""
        return self.config_file.exists()

    def checkpoints_of(self, learner: str) -> Path:
        """Return the folder of one learner's checkpoints."""
        return self.path / "checkpoints" / learner

    def weights_to_score_of(self, learner: str) -> Path:
        """Return the folder of one learner's weights that wait for the scoring worker."""
        return self.path / "scoring" / "checkpoints" / learner

    def check_entries(self) -> None:
        """Raise InputError if a file or folder of the run is a link that leads out of it, a pipe or a device."""
        for name in OWN_NAMES:
            for entry in self.path.glob(name):
                for path in (entry, *entry.rglob("*")):
                    join_inside(self.path, path.relative_to(self.path).as_posix())

    def delete_partial_files(self) -> None:
        """Delete partly written files of killed processes."""
        delete_partial_files(self.path, ("checkpoints", "scoring"))

    def learners(self) -> list[str]:
        """Return the names of the learners that have a checkpoint."""
        folders = (self.path / "checkpoints").glob("*")
        names = (folder.name for folder in folders if any(folder.glob("*.safetensors")))
        return sorted(names, key=lambda name: (len(name), name))  # member2 before member10

    def write_config(self, config: TrainConfig, spec: EnvSpec) -> None:
        """Write config.json."""
        data = {"train": config.to_json(), "spec": dataclasses.asdict(spec)}
        write_atomic(self.config_file, (json.dumps(data, indent=2) + "\n").encode())

    def read_config(self) -> tuple[TrainConfig, EnvSpec]:
        """Read the config and the environment's spec from config.json."""
        try:
            data = read_json(self.config_file)
        except OSError as error:
            raise InputError(f"{self.path} is no run folder: {self.config_file.name}: {error.strerror}") from None
        with parsing(self.config_file, "a config.json that expgen wrote"):
            spec = EnvSpec.from_json(data["spec"])
            return TrainConfig.from_json(data["train"]), spec

    def log_failure(self, what: str, trace: str) -> None:
        """Append a traceback to failures.log."""
        try:
            with open(join_inside(self.path, self.failures_file.name), "a") as file:
                file.write(f"{what}\n{trace}\n")
        except OSError as error:
            raise write_error(self.failures_file, error) from None
