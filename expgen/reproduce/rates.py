"""How fast each algorithm trains beside PPO, as measured once on one machine."""

# Training steps/s of one learner alone on one H200: ProcGen's Maze, the paper's settings.
STEPS_PER_S = {
    "ppo": 41_039,
    "plr": 41_956,
    "ucb-drac": 35_514,
    "idaac": 24_715,
    "leep": 22_811,
    "ppg": 57_729,  # without auxiliary phases
}
LIKE = {"daac": "idaac"}  # not measured, and nearly the same work
# Passes of one network over each step played, forward and back; forward alone is a third of one.
IDAAC_PASSES = 2 + 9 + 1 / 3  # frames and their partners, nine epochs of the values, values read off
PPG_PASSES = 2 + 1 / 3  # one epoch of both networks, values read off
PPG_AUXILIARY_PASSES = 6 * 2 + 1 / 3  # six epochs of both networks, π_old


def rate_beside_ppo(algo: str) -> float:
    """Steps of `algo` for every step of PPO; 1 for what is PPO with another reward or another network."""
    algo = LIKE.get(algo, algo)
    rate = ppg_rate() if algo == "ppg" else STEPS_PER_S.get(algo, STEPS_PER_S["ppo"])
    return rate / STEPS_PER_S["ppo"]


def ppg_rate() -> float:
    """PPG's steps/s, auxiliary phases included.

    IDAAC and PPG play alike, so the time IDAAC takes longer is that of its additional passes, and what an auxiliary
    phase takes follows from the passes it makes.
    """
    seconds_a_pass = (1 / STEPS_PER_S["idaac"] - 1 / STEPS_PER_S["ppg"]) / (IDAAC_PASSES - PPG_PASSES)
    return 1 / (1 / STEPS_PER_S["ppg"] + PPG_AUXILIARY_PASSES * seconds_a_pass)
