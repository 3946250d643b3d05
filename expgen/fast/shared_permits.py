"""SharedPermits: limit how many learners update at once on a device that several processes share.

A permit is a lock on one of a few files, which the system releases when the process that holds it dies.
"""

import fcntl
import os
from pathlib import Path


class SharedPermits:
    """`training.pipeline.Permits` shared by all processes that use the same folder and number."""

    def __init__(self, folder: Path, number: int) -> None:
        self.files = [folder / f"permit{n}" for n in range(number)]
        self.held: list[int] = []  # file descriptors of the locks held

    def try_acquire(self) -> bool:
        for file in self.files:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
            else:
                self.held.append(descriptor)
                return True
        return False

    def release(self) -> None:
        os.close(self.held.pop())
