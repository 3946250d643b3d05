"""A recording as a file, by the file's ending."""

import tempfile
from pathlib import Path

from expgen.errors import InputError
from expgen.files import write_whole
from expgen.watch.page import inspector_page
from expgen.watch.recording import Recording
from expgen.watch.video import find_ffmpeg, write_gif, write_mp4

ENDINGS = (".html", ".gif", ".mp4")


def check_out(path: Path) -> None:
    """An InputError unless we can write such a file; asked before an episode is played."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"--out is {path}; accepted: a file that ends in {', '.join(ENDINGS)}")
    if path.suffix.lower() == ".mp4":
        find_ffmpeg()


def write_recording(recording: Recording, path: Path, fps: int = 8) -> None:
    """The inspector (.html) or a video of `fps` steps a second; the file is written whole or not at all."""
    check_out(path)
    ending = path.suffix.lower()
    if ending == ".html":
        write_whole(path, inspector_page([recording]).encode())
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"episode{ending}")
        (write_gif if ending == ".gif" else write_mp4)(recording, file, fps)
        write_whole(path, file.read_bytes())
