"""Method: the algorithm and settings of a score row, with its label and its place in tables."""

from dataclasses import dataclass

from expgen.colors import ALGORITHMS
from expgen.evaluation.scores import INFO_SETTINGS, count_of, read_settings
from expgen.paper.numbers import METHODS

LABELS = METHODS | {
    "daac": "DAAC",
    "ppo-gru": "PPO + GRU",
    "maxent": "maxEnt",
    "mixed": "mixed reward",
    "openend": "open-end explorers",
    "random": "random actions",
}
ORDER = tuple(ALGORITHMS)  # order of methods in tables
RETURN = "return"  # the measure of rows in score files


@dataclass(frozen=True)
class Method:
    """An algorithm with the settings in which it differs from its own defaults."""

    algorithm: str
    settings: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of_row(algorithm: str, settings: str) -> "Method":
        """Return the method of a score row, without settings that do not define a variant: leader, INFO_SETTINGS."""
        pairs = read_settings(settings).items()
        return Method(algorithm, tuple(sorted(pair for pair in pairs if pair[0] not in ("leader", *INFO_SETTINGS))))

    @property
    def label(self) -> str:
        """The paper's name, with settings in brackets: `ExpGen-PPO`, `Ensemble + random`, `maxEnt (levels 500)`."""
        settings = dict(self.settings)
        label = LABELS.get(self.algorithm, self.algorithm)
        if self.algorithm.startswith("expgen") and settings.get("fallback") == "random":
            del settings["fallback"]
            label = "Ensemble + random"
        in_words = ", ".join(_in_words(name, value) for name, value in settings.items())
        return f"{label} ({in_words})" if in_words else label

    @property
    def rank(self) -> tuple[int, str, tuple[tuple[float, str, str], ...]]:
        """Sort key: methods in the paper's order, then variants by the values of their settings."""
        index = ORDER.index(self.algorithm) if self.algorithm in ORDER else len(ORDER)
        return index, self.algorithm, tuple((number_of(value), value, name) for name, value in self.settings)

    @property
    def is_default(self) -> bool:
        """Whether all settings are the algorithm's defaults."""
        return not self.settings

    def setting(self, name: str) -> str:
        """Return the value of one setting; empty if it is the default."""
        return dict(self.settings).get(name, "")

    def count(self, name: str) -> int:
        """Return the value of one setting as an integer; 0 if it is the default or not an integer."""
        return count_of(self.setting(name))


def _in_words(name: str, value: str) -> str:
    """Return `end value 1`; a setting that is True is given by its name alone."""
    name = name.replace("_", " ")
    return name if value == "True" else f"{name} {value}"


def number_of(text: str) -> float:
    """Parse a number such as `0.5` or `50M`; return 0 for any other text."""
    scale = {"k": 1e3, "M": 1e6}.get(text[-1:], 1.0)
    try:
        return float(text[:-1] if scale > 1 else text) * scale
    except ValueError:
        return 0.0
