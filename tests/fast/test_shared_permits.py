"""Permits to update that processes share: so many and no more, and none is lost with its holder."""

import subprocess
import sys
from pathlib import Path

from expgen.fast.shared_permits import SharedPermits

HOLDER = """
import sys
from pathlib import Path
from expgen.fast.shared_permits import SharedPermits
permits = SharedPermits(Path(sys.argv[1]), 2)
print(permits.take(), flush=True)
sys.stdin.read()
"""


def test_so_many_may_be_held_and_no_more(tmp_path: Path) -> None:
    one, other = SharedPermits(tmp_path, 2), SharedPermits(tmp_path, 2)
    assert one.take() and other.take()
    assert not one.take() and not other.take()
    one.give_back()
    assert other.take() and not one.take()


def test_a_permit_returns_when_its_holder_is_killed(tmp_path: Path) -> None:
    permits = SharedPermits(tmp_path, 2)
    assert permits.take()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "True\n"
    assert not permits.take()
    holder.kill()
    holder.communicate()
    assert permits.take()
