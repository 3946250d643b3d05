"""Colours of algorithms and roles in figures, videos and pages: Paul Tol's colour-blind safe palettes."""

ALGORITHMS = {
    "random": "#9970AB", "ppo": "#009988", "ppo-gru": "#44BB99", "mixed": "#CC6677", "plr": "#DDCC77",
    "ucb-drac": "#999933", "ppg": "#88CCEE", "daac": "#AA4499", "idaac": "#117733", "leep": "#882255",
    "maxent": "#EE7733", "expgen": "#0077BB", "expgen-idaac": "#332288",
}  # fmt: skip
OTHER = "#888888"  # any other algorithm
ROLES = {
    "ensemble": ALGORITHMS["expgen"],
    "leader": "#77AADD",
    "explorer": ALGORITHMS["maxent"],
    "random": ALGORITHMS["random"],
    "policy": ALGORITHMS["ppo"],
    "rule": OTHER,
}  # who acts at a step: the names of expgen.watch.reasons.Who


def color_of(algorithm: str) -> str:
    """Return the colour `#RRGGBB` of `algorithm`, a name of `expgen train --algo`."""
    return ALGORITHMS.get(algorithm, OTHER)
