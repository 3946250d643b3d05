"""The tables and figures of the paper by name."""

from dataclasses import dataclass

from expgen.errors import check_choice
from expgen.paper.numbers import rows


@dataclass(frozen=True)
class Exhibit:
    """A table or figure with its name, as in `expgen reproduce NAME`, and a short description."""

    name: str
    shows: str

    @property
    def title(self) -> str:
        """The paper's name, such as `Table 1`."""
        return self.name.replace("-", " ").capitalize()


EXHIBITS = {row["name"]: Exhibit(**row) for row in rows("exhibits")}  # in the order of the paper
ALIASES = {"test_25m": "table-1", "train_25m": "table-2", "train_50m": "table-8", "test_50m": "table-9"}  # by CSV file


def exhibit(name: str) -> Exhibit:
    """Return the exhibit with this name or CSV file name; raise InputError if there is none."""
    return EXHIBITS[check_choice("NAME", ALIASES.get(name, name), EXHIBITS)]
