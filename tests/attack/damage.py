"""Ways to damage a file: one wrong JSON value, changed bytes, too deeply nested data."""

import random
from typing import Any

JUNK: list[Any] = [
    None, True, -1, 0, 2**70, 1e308, float("nan"), "", "x" * 10_000, "\x00", "../../etc/passwd", "<script>", [], [[]],
    {}, {"a": {}}, [None] * 100, "inf", "٣",
]  # fmt: skip


def mangled(tree: Any, rng: random.Random) -> Any:
    """Return `tree` with one random value made wrong."""
    if isinstance(tree, dict) and tree and rng.random() < 0.85:
        name = rng.choice(sorted(tree))
        kind = rng.random()
        if kind < 0.1:
            return {key: value for key, value in tree.items() if key != name}
        if kind < 0.2:
            return {**tree, rng.choice(["extra", "__class__", ""]): rng.choice(JUNK)}
        return {**tree, name: mangled(tree[name], rng)}
    return rng.choice(JUNK)


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return `content` with bytes changed, removed, repeated or inserted."""
    at = rng.randrange(len(content))
    length = rng.randrange(1, 20)
    rest, before = content[at + length :], content[max(0, at - length) : at]
    odd = rng.choice([b"\x00", b'"', b",", b"\n", b"\r", b"\xff", b"nan"])
    return content[:at] + rng.choice(
        [rng.randbytes(length) + rest, rest, before + content[at:], odd + content[at:], b""]
    )
