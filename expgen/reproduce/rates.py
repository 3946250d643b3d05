"""How fast each algorithm trains beside PPO, as measured on one machine."""

# Training steps/s of one learner alone on one H200, over PPO's in the same session (Maze, the paper's settings).
BESIDE_PPO = {
    "ppo": 1.0,
    "plr": 41_956 / 41_039,
    "ucb-drac": 35_514 / 41_039,
    "idaac": 24_715 / 41_039,
    "leep": 22_811 / 41_039,
    "ppg": 18_839 / 49_525,  # over 31 rollouts and the auxiliary phase after them
}
LIKE = {"daac": "idaac"}  # not measured, and nearly the same work


def rate_beside_ppo(algo: str) -> float:
    """Steps of `algo` for every step of PPO; 1 for what is PPO with another reward or another network."""
    return BESIDE_PPO.get(LIKE.get(algo, algo), 1.0)
