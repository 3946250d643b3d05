"""agent.json and config.json with one invalid value are usable or refused in one line."""

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
    """Yield the path (keys and indices) of every value in plain data; only the first item of lists."""
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
def test_file_with_one_invalid_value_is_usable_or_refused_in_one_line(
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
