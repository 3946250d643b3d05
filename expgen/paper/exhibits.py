"""Every table and figure of the paper by name."""

from dataclasses import dataclass

from expgen.errors import check_choice


@dataclass(frozen=True)
class Exhibit:
    """A table or figure: `name` as in `expgen reproduce NAME`, and what it shows."""

    name: str
    shows: str

    @property
    def title(self) -> str:
        """`Table 1`."""
        return self.name.replace("-", " ").capitalize()


EXHIBITS = {
    name: Exhibit(name, shows)
    for name, shows in {
        "figure-1": "what the games look like, and the Hidden Maze",
        "figure-2": "normalised test scores on five games",
        "figure-3": "where an explorer goes in one maze",
        "figure-4": "generalisation gap of exploring and of reward, against the number of training levels",
        "figure-5": "one policy on a mixed reward (Eq. 9), by β and γ",
        "table-1": "test scores (in the paper: 16 games, 200 levels, 25M steps)",
        "table-2": "train scores (in the paper: 16 games, 200 levels, 25M steps)",
        "figure-6": "score distributions and probability of improvement",
        "figure-7": "aggregate metrics over all games",
        "figure-8": "what is seen in a Hidden Maze, and what is there",
        "figure-9": "training in the Hidden Maze",
        "figure-10": "generalisation gap of explorer and PPO in every game",
        "figure-11": "explorers beside their oracles, with and without memory",
        "table-3": "normalisation constants",
        "table-4": "quorum of the ensemble by game",
        "table-5": "ensemble size",
        "table-6": "PPO's settings",
        "table-7": "neighbour rank of the intrinsic reward",
        "figure-12": "normalised test scores in every game",
        "table-8": "train scores after twice the steps (in the paper: 50M)",
        "table-9": "test scores after twice the steps (in the paper: 50M)",
        "table-10": "ablation on Maze",
        "table-11": "train scores with L0 and L2 intrinsic reward",
        "table-12": "test scores with L0 and L2 intrinsic reward",
        "figure-13": "IDAAC trained for four times the steps (in the paper: 100M)",
    }.items()
}  # in the order in which the paper shows them


ALIASES = {"test_25m": "table-1", "train_25m": "table-2", "train_50m": "table-8", "test_50m": "table-9"}  # csv files


def exhibit(name: str) -> Exhibit:
    """The exhibit of that name, or of the file that has its numbers."""
    return EXHIBITS[check_choice("NAME", ALIASES.get(name, name), EXHIBITS)]
