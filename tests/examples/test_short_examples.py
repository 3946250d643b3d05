"""The examples are short, run to completion and print the expected lines."""

import re
from pathlib import Path

import pytest

from examples import cleanrl_ppo

EXAMPLES = Path(cleanrl_ppo.__file__).parent
LONGER = {"ppo_one_page.py"}  # tested in test_ppo_one_page.py


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_example_has_at_most_40_lines(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    assert len(lines) <= 40 or path.name in LONGER


def test_cleanrl_ppo_learns_through_gymnasium(capsys: pytest.CaptureFixture[str]) -> None:
    cleanrl_ppo.train(updates=14)
    shares = [int(share) for share in re.findall(r"solved (\d+)% of \d+ episodes", capsys.readouterr().out)]
    assert len(shares) == 14 and sum(shares[-4:]) > sum(shares[:4]) + 12


def test_sb3_models_play_as_one_agent(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is missing: pip install 'expgen[sb3]'")
    from examples import sb3_members

    sb3_members.main(steps=2048, episodes=20)
    output = capsys.readouterr().out
    assert re.fullmatch(r"one policy: solves \d+% of 20 unseen mazes\nExpGen: solves \d+% of 20 unseen mazes\n", output)
