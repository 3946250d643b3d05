"""tune.csv: what was picked comes back; what is damaged or of another ensemble does not pass for it."""

from pathlib import Path

import pytest

from expgen.agents.decision import Counts
from expgen.errors import InputError
from expgen.evaluation.evaluate import Episode, Evaluation
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import make_config
from expgen.runs.tuned import Trial, read_tuned, write_tuned

CONFIG = make_config(algo="expgen", members=4)


def trial(min_agree: int, alpha: float) -> Trial:
    evaluation = Evaluation(7.0, 1.0, 0.7, 6.0, 8.0, [Episode(0, 7.0, 9, False)])
    return Trial(min_agree, alpha, evaluation, Counts(10, 8, 4, 0, 3, 2))


def test_the_pick_comes_back_and_no_other(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert read_tuned(folder, CONFIG) == {}  # never tuned
    trials = [trial(2, 0.5), trial(3, 0.1), trial(4, 0.25)]
    for picked in trials:
        write_tuned(folder, 4, trials, picked)
        assert read_tuned(folder, CONFIG) == {"min_agree": picked.min_agree, "alpha": picked.alpha}


def test_what_was_tuned_for_another_number_of_members_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, only = RunFolder(tmp_path), trial(2, 0.5)
    write_tuned(folder, 3, [only], only)
    assert read_tuned(folder, CONFIG) == {}
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"expgen: {folder.tune_file} is of 3 members and is passed over; tune again"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "picked\n",
        "min_agree,members,alpha,picked\n3,4,0.5,0\n",
        "min_agree,members,alpha,picked\n3,4,half,1\n",
        "min_agree,members,picked\n3,4,1\n",
        "members,picked,min_agree,alpha\n4,1\n",
    ],
)
def test_a_damaged_file_is_one_line(text: str, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.tune_file.write_text(text)
    with pytest.raises(InputError, match=r"tune\.csv is damaged; accepted: a file that expgen tune wrote"):
        read_tuned(folder, CONFIG)
