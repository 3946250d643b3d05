"""GAME and --env: which environment is meant."""

from expgen.errors import InputError, check_choice

FAMILIES = ("minimaze", "procgen", "gymnasium", "envpool")


def env_name(game: str | None, env: str | None) -> str | None:
    """`maze` → `procgen:maze`; `--env gymnasium:ID` as it stands; neither → None, which means the default."""
    from expgen.envs.procgen import GAMES

    family, _, inside = (env or "").partition(":")
    if env:
        check_choice("--env", family, FAMILIES)
    if game and inside:
        raise InputError(f"GAME is {game!r} but --env names one too: {env!r}; accepted: one of them")
    if game and family in ("", "procgen"):
        return f"procgen:{check_choice('GAME', game, GAMES)}"
    if game and family == "minimaze":
        raise InputError(f"GAME is {game!r} but --env minimaze has no games; accepted: no GAME")
    if game:
        return f"{family}:{game}"
    if family == "procgen":
        return f"procgen:{check_choice('GAME', inside, GAMES)}"
    if family in ("gymnasium", "envpool") and not inside:
        raise InputError(f"--env is {env!r}; accepted: {family}:ID")
    return env
