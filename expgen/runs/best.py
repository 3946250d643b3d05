"""The settings of `--preset best`: our strongest agent of each game, and how it was trained (docs/results)."""

from typing import Any

DEFAULT_ALGO = "openend"  # explorers alone, where novelty leads to the goal
# Explorers whose value continues past an episode's end (docs/beyond-the-paper.md): κ = 1, averaged weights, 3 in turn.
EXPLORER = {"end_value": 1.0, "average": 0.98}
NUM_EXPLORERS = 3
STEPS = {  # of an explorer
    "procgen:*": {"steps": 8_192_000}, "procgen:maze": {"steps": 11_600_000}, "procgen:heist": {"steps": 13_107_200},
}  # fmt: skip
MINIMAZE_STEPS = {"minimaze": {"steps": 1_500_000}}
AGENT = {"vote": "majority", "once": True}
# Jumper, where novelty leads to deaths: an IDAAC member, and an explorer that learns from the game's reward too.
JUMPER = "expgen-idaac+mixed"
MIXED = {"gamma": 0.99, "beta": 0.5, "reward_scale": 0.1, "average": 0.98, "steps": 6_000_000}
JUMPER_IDAAC = {
    "members": 1, "average": 0.98, "steps": 12_000_000, "gamma": 0.99, "value_epochs": 3, "explorer_count": 1,
}  # fmt: skip
AGENTS = {"procgen:jumper": {"vote": "turns", "patience": 100}}  # voting scores no better there
# Games of reaction rather than exploration: one IDAAC policy. Shorter rollouts of more games are as many steps in half
# the time; three value epochs are a third of the authors' work, where they do not set fewer themselves.
IDAAC = {"average": 0.98, "envs": 128, "rollout_steps": 128}
FEWER_EPOCHS = {"value_epochs": 3}
IDAAC_BY_GAME: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("starpilot", "fruitbot", "bossfight", "leaper", "coinrun", "climber", "ninja"), FEWER_EPOCHS),
    "bigfish": {}, "chaser": {}, "dodgeball": {}, "miner": {}, "plunder": {},
    "caveflyer": {**FEWER_EPOCHS, "gamma": 0.99},
}  # fmt: skip
IDAAC_SETTINGS = {f"procgen:{game}": {**IDAAC, **values} for game, values in IDAAC_BY_GAME.items()}
ALGOS = {"procgen:jumper": JUMPER, **dict.fromkeys(IDAAC_SETTINGS, "idaac")}
# Temperatures of these policies, chosen on selection levels (docs/results/sixteen-games.md); 1 for the other games.
TEMPERATURES = {
    "procgen:bigfish": 0.25, "procgen:starpilot": 0.25, "procgen:chaser": 0.25, "procgen:fruitbot": 0.0,
    "procgen:bossfight": 0.0, "procgen:plunder": 0.5, "procgen:leaper": 0.5, "procgen:caveflyer": 0.5,
}  # fmt: skip
MIRRORED = (
    "maze", "starpilot", "fruitbot", "bossfight", "leaper", "bigfish", "chaser", "dodgeball", "miner", "caveflyer",
)  # fmt: skip
AUGMENTATION = {
    "minimaze": {"mirror": True},
    "procgen:jumper": {"mirror": True, "recolor": True},
    **{f"procgen:{game}": {"mirror": True} for game in MIRRORED},
}
