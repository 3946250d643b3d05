"""expgen reproduce: the list, bad names, an exhibit without runs."""

import pytest

from expgen.cli.main import main
from expgen.paper.exhibits import EXHIBITS


def run(capsys, *words):
    status = main(["reproduce", *map(str, words)])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_reproduce_list_names_every_exhibit(capsys):
    status, out, _ = run(capsys, "--list", "--scale", "smoke", "--device", "cpu")
    assert status == 0
    lines = [line.split() for line in out.splitlines()]
    listed = {line[0]: line for line in lines if line and line[0] in EXHIBITS}
    assert list(listed) == list(EXHIBITS)
    assert listed["table-3"][1:4] == ["0", "0", "0.00"]
    assert int(listed["table-5"][1]) == 3 and listed["table-5"][2] == "6,144"  # two members and an explorer of 2048
    assert float(listed["table-5"][3]) >= 0


def test_reproduce_writes_an_exhibit_without_runs(tmp_path, capsys):
    status, out, _ = run(capsys, "table-6", "--scale", "smoke", "--out", tmp_path)
    assert status == 0 and "report.html" in out
    assert "environments per worker" in (tmp_path / "tables" / "table-6.md").read_text()


@pytest.mark.parametrize(
    "words",
    [["table-99"], [], ["table-1", "--scale", "huge"], ["table-1", "--engine", "carrier-pigeon"],
     ["table-1", "--games", "chess"],
     ["table-1", "--games", "", "--scale", "paper", "--list"], ["table-1", "--games", "maze", "--scale", "smoke"],
     ["table-10", "--games", "heist", "--scale", "paper"]],
)  # fmt: skip
def test_reproduce_rejects_bad_input(words, capsys):
    status, _, err = run(capsys, *words)
    assert status == 2 and err.count("\n") == 1
    assert "accepted" in err
