"""Files of strangers with any one place made wrong: each can be used all the same, or is refused in one line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from expgen.errors import InputError
from expgen.runs.agent_files import read_agent
from expgen.runs.folder import RunFolder

JUNK: list[Any] = [None, True, 2**70, float("nan"), "x" * 10_000, "\x00", [[]], {"a": {}}]


def places(tree: Any, path: tuple = ()) -> Iterator[tuple]:
    """Every place in plain data, as the names and indices that lead there; of lists the first entry."""
    yield path
    names = tree if isinstance(tree, dict) else range(len(tree))[:1] if isinstance(tree, list) else ()
    for name in names:
        yield from places(tree[name], (*path, name))


def put(tree: Any, path: tuple, value: Any) -> Any:
    if not path:
        return value
    changed = tree.copy()
    changed[path[0]] = put(tree[path[0]], path[1:], value)
    return changed


def use_agent(run: Path) -> None:
    agent = read_agent(run)
    assert f"{agent.game} {agent.spec.name}".lower() and agent.seed + 1 and dict(agent.options) is not None
    assert agent.test_set and agent.trained() and ", ".join(agent.tuned) is not None


def use_config(run: Path) -> None:
    config, spec = RunFolder(run).read_config()
    assert f"{config.game} {spec.name}".lower() and config.digest() and dict(config.options) is not None
    assert config.test_set and config.seed + config.steps + config.envs


@pytest.mark.parametrize(("file", "use"), [("agent.json", use_agent), ("config.json", use_config)])
def test_a_file_with_any_one_place_made_wrong_is_refused_or_can_be_used(
    file: str, use: Any, small: Any, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    small.train(run, 1, algo="expgen", members=2, min_agree=1, **small.explorer)
    tree, refused = json.loads((run / file).read_text()), 0
    use(run)
    for path in places(tree):
        for junk in JUNK:
            (run / file).write_text(json.dumps(put(tree, path, junk)))
            try:
                use(run)
            except InputError as error:
                refused += 1
                assert "\n" not in str(error) and len(str(error)) < 1000, f"{path} as {junk!r:.40}: {error!s:.200}"
            except Exception as error:
                raise AssertionError(f"{path} as {junk!r:.40}: {error!r}") from error
    assert refused > 500
