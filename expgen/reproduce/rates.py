"""How fast each algorithm trains beside PPO, as measured once on one machine."""

# Training steps/s on an NVIDIA H200 with 16 cores: ProcGen's Maze, paper preset, one learner alone (`expgen bench`).
STEPS_PER_S = {
    "ppo": 41_039,
    "plr": 41_956,
    "ucb-drac": 35_514,
    "maxent": 31_769,
    "idaac": 24_715,
    "leep": 22_811,
    "ppg": 57_729,  # without auxiliary phases
}
# Passes of one network over every step played, forward and back; forward alone is a third of one.
IDAAC_PASSES = 2 + 9 + 1 / 3  # frames and their partners, nine epochs of the values, values read off
PPG_PASSES = 2 + 1 / 3  # one epoch of both networks, values read off
PPG_AUXILIARY_PASSES = 6 * 2 + 1 / 3  # six epochs of both networks, π_old
LIKE = {"daac": "idaac", "ppo-gru": "maxent", "mixed": "maxent"}  # not measured, and nearly the same work


def steps_per_s(algo: str) -> float:
    """Of `algo` there, auxiliary phases included.

    IDAAC and PPG play alike, so what IDAAC takes longer is the price of its additional passes; PPG's auxiliary phases
    are charged at that price.
    """
    algo = LIKE.get(algo, algo)
    if algo != "ppg":
        return STEPS_PER_S[algo]
    seconds_a_pass = (1 / STEPS_PER_S["idaac"] - 1 / STEPS_PER_S["ppg"]) / (IDAAC_PASSES - PPG_PASSES)
    return 1 / (1 / STEPS_PER_S["ppg"] + PPG_AUXILIARY_PASSES * seconds_a_pass)
