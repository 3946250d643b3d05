"""Every table and figure of the paper by name."""

from dataclasses import dataclass

from expgen.errors import check_choice
from expgen.paper.numbers import rows


@dataclass(frozen=True)
class Exhibit:
    """A table or figure: `name` as in `expgen reproduce NAME`, and what it shows."""

    name: str
    shows: str

    @property
    def title(self) -> str:
        """`Table 1`."""
        return self.name.replace("-", " ").capitalize()


EXHIBITS = {row["name"]: Exhibit(**row) for row in rows("exhibits")}  # in the order in which the paper shows them
ALIASES = {"test_25m": "table-1", "train_25m": "table-2", "train_50m": "table-8", "test_50m": "table-9"}  # csv files


def exhibit(name: str) -> Exhibit:
    """The exhibit of that name, or of the file that has its numbers."""
    return EXHIBITS[check_choice("NAME", ALIASES.get(name, name), EXHIBITS)]
