"""Colours of agents, once for figures, films and pages: Paul Tol's, which the colour-blind can tell apart."""

ALGORITHMS = {
    "random": "#9970AB", "ppo": "#009988", "ppo-gru": "#44BB99", "mixed": "#CC6677", "plr": "#DDCC77",
    "ucb-drac": "#999933", "ppg": "#88CCEE", "daac": "#AA4499", "idaac": "#117733", "leep": "#882255",
    "maxent": "#EE7733", "expgen": "#0077BB", "expgen-idaac": "#332288",
}  # fmt: skip
OTHER = "#888888"  # an algorithm that is not ours
ROLES = {
    "ensemble": ALGORITHMS["expgen"],
    "leader": "#77AADD",
    "explorer": ALGORITHMS["maxent"],
    "random": ALGORITHMS["random"],
    "policy": ALGORITHMS["ppo"],
    "rule": OTHER,
}  # who acts in an episode: the names of expgen.watch.reasons.Who


def color_of(algorithm: str) -> str:
    """The colour of `algorithm`, a name of `expgen train --algo`, as `#RRGGBB`."""
    return ALGORITHMS.get(algorithm, OTHER)
