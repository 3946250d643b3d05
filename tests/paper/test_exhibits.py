"""Names of tables and figures, and of the CSV files with their numbers."""

import pytest

from expgen.errors import InputError
from expgen.paper import numbers
from expgen.paper.exhibits import ALIASES, EXHIBITS, exhibit


def test_every_table_and_figure_has_a_name():
    assert [name for name in EXHIBITS if name.startswith("table")] == [f"table-{n}" for n in range(1, 13)]
    assert [name for name in EXHIBITS if name.startswith("figure")] == [f"figure-{n}" for n in range(1, 14)]
    assert exhibit("table-1").title == "Table 1"


def test_exhibit_accepts_csv_file_names():
    for file, name in ALIASES.items():
        assert numbers.rows(file) and exhibit(file) is EXHIBITS[name]


def test_exhibit_rejects_unknown_name():
    with pytest.raises(InputError, match=r"NAME is 'table-13'; accepted: figure-1, "):
        exhibit("table-13")
