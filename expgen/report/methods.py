"""Who a score belongs to: the method and its settings, as `algorithm` and `settings` of a score row say them."""

from dataclasses import dataclass

from expgen.colors import ALGORITHMS
from expgen.paper.numbers import METHODS

LABELS = METHODS | {
    "daac": "DAAC",
    "ppo-gru": "PPO + GRU",
    "maxent": "maxEnt",
    "mixed": "mixed reward",
    "openend": "open-end explorers",
    "random": "random actions",
}
ORDER = tuple(ALGORITHMS)  # in which methods are listed
RETURN = "return"  # what rows of score files measure


@dataclass(frozen=True)
class Method:
    """An algorithm with the settings in which it differs from its own defaults."""

    algorithm: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """As in the paper: `ExpGen-PPO`, `Ensemble + random`, `maxEnt (levels 500)`."""
        settings = dict(self.settings)
        label = LABELS.get(self.algorithm, self.algorithm)
        if self.algorithm.startswith("expgen") and settings.get("fallback") == "random":
            del settings["fallback"]
            label = "Ensemble + random"
        inside = ", ".join(_in_words(name, value) for name, value in settings.items())
        return f"{label} ({inside})" if inside else label

    @property
    def rank(self) -> tuple[int, str, tuple[tuple[float, str, str], ...]]:
        """Sorts methods as the paper lists them, variants by their values."""
        place = ORDER.index(self.algorithm) if self.algorithm in ORDER else len(ORDER)
        return place, self.algorithm, tuple((number_of(value), value, name) for name, value in self.settings)

    def setting(self, name: str, default: str = "") -> str:
        """The value of one setting."""
        return dict(self.settings).get(name, default)

    def count(self, name: str) -> int:
        """The value of one setting that counts something; 0 where it has none, or no whole number."""
        return count_of(self.setting(name))

    def has_only(self, *names: str) -> bool:
        """Whether it differs from the algorithm's defaults in nothing but these settings."""
        return all(name in names for name, _ in self.settings)


def read_settings(text: str) -> dict[str, str]:
    """`leader=3 min_agree=2` as names and values."""
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


def count_of(text: str) -> int:
    """A whole number of at most nine digits; 0 where `text` is none."""
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _in_words(name: str, value: str) -> str:
    """`end value 1`; what is merely on or off goes by its name."""
    name = name.replace("_", " ")
    return name if value == "True" else f"{name} {value}"


def number_of(text: str) -> float:
    """`0.5`, `50M`; 0 where `text` is no number."""
    scale = {"k": 1e3, "M": 1e6}.get(text[-1:], 1.0)
    try:
        return float(text[:-1] if scale > 1 else text) * scale
    except ValueError:
        return 0.0
