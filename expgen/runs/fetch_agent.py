"""fetch_agent: get the weights of a shipped agent that the installed package lists without them.

The wheel has the cards of all shipped agents, but leaves the weights of some out to stay small. A clone of the
repository has all of them, in expgen/pretrained.
"""

import hashlib
from pathlib import Path

from expgen.agents.policies import read_card
from expgen.errors import InputError
from expgen.files import check_name, join_inside, read_bytes, write_atomic
from expgen.runs.folder import RunFolder
from expgen.runs.shipped import PRETRAINED, bundled_agents, fetched_agents
from expgen.storage.location import Location, is_url
from expgen.storage.store import Store


def fetch_agent(name: str, source: Location, where: Path = PRETRAINED, to: Path | None = None) -> RunFolder:
    """Copy the weights of the shipped agent `name` from `source`, check them, and return their folder.

    source: a folder or URL with the agents' folders, such as expgen/pretrained of a clone.
    where: the folder of the package's own agents, whose cards have the checksums.
    to: the folder to write to; default: `fetched_agents()`.

    Files whose checksum differs from the card's are refused. The card is written last, so that an interrupted
    download is not taken for an agent.
    """
    agents = bundled_agents(where, to)
    if name not in agents:
        raise InputError(f"NAME is {name!r}; accepted: {', '.join(agents)}")
    package = RunFolder(where / agents[name].folder.path.name)
    target = RunFolder((to or fetched_agents()) / package.path.name)
    files = read_card(package.card_file).get("files", {})
    for file, checksum in files.items():
        content = _read(source, f"{package.path.name}/{check_name(file)}")
        if hashlib.sha256(content).hexdigest() != checksum:
            raise InputError(f"{file} of {name} in {source} does not match the checksum in {package.card_file}")
        write_atomic(join_inside(target.path, file), content)
    for found in target.path.glob("checkpoints/*/*.safetensors"):  # of an earlier version
        if found.relative_to(target.path).as_posix() not in files:
            found.unlink()
    for path in (package.config_file, package.scores_file, package.agent_file, package.card_file):
        if path.exists():
            write_atomic(target.path / path.name, path.read_bytes())
    return target


def _read(source: Location, name: str) -> bytes:
    """Return the content of the file `name` in `source`."""
    missing = FileNotFoundError if is_url(source) else OSError
    try:
        return Store(str(source)).read(name) if is_url(source) else read_bytes(join_inside(Path(source), name))
    except missing:
        raise InputError(f"{source} has no {name}; accepted: a folder or URL of agents, as expgen/pretrained") from None
