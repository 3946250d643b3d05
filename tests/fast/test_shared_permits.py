"""SharedPermits: processes share a limited number of permits, and a dead process releases its own."""

import subprocess
import sys
from pathlib import Path

from expgen.fast.shared_permits import SharedPermits

HOLDER = """
import sys
from pathlib import Path
from expgen.fast.shared_permits import SharedPermits
permits = SharedPermits(Path(sys.argv[1]), 2)
print(permits.try_acquire(), flush=True)
sys.stdin.read()
"""


def test_no_more_permits_than_the_limit_are_given_out(tmp_path: Path) -> None:
    one, other = SharedPermits(tmp_path, 2), SharedPermits(tmp_path, 2)
    assert one.try_acquire() and other.try_acquire()
    assert not one.try_acquire() and not other.try_acquire()
    one.release()
    assert other.try_acquire() and not one.try_acquire()


def test_permit_is_released_when_its_process_is_killed(tmp_path: Path) -> None:
    permits = SharedPermits(tmp_path, 2)
    assert permits.try_acquire()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "True\n"
    assert not permits.try_acquire()
    holder.kill()
    holder.communicate()
    assert permits.try_acquire()
