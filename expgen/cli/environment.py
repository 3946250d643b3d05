"""GAME and --env: which environment is meant."""

from expgen.errors import InputError


def env_name(game: str | None, env: str | None) -> str | None:
    """`maze` → `procgen:maze`; with a family in --env GAME is a game of it; neither → None, which means the default."""
    from expgen.envs.names import full_name
    from expgen.envs.procgen import GAMES

    family, _, inside = (env or "").partition(":")
    if game and env and (inside or family not in ("procgen", "gymnasium", "envpool")):
        raise InputError(f"GAME is {game!r} but --env names one too: {env!r}; accepted: one of them")
    if game and env:
        return full_name(f"{env.rstrip(':')}:{game}", "GAME")
    if env == "procgen":
        raise InputError(f"--env is 'procgen'; accepted with a GAME: {', '.join(GAMES)}")
    if game or env:
        return full_name(game or env or "", "GAME" if game else "--env")
    return None
