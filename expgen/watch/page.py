"""The inspector: a recorded episode as an HTML page, or as a player inside another page.

    page = inspector_page([recording])                         # a complete HTML document

    head = player_assets()                                     # once, in the <head> of another page
    body = player(recording)                                   # one episode
    body = player_group([player(ppo), player(expgen)])         # side by side, stepped together
    body = player_group(players_in(page))                      # players of an existing page

The page loads nothing: images are data URIs, and its content security policy forbids other sources.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from expgen.html import render
from expgen.watch.film import encode_film, encode_picture
from expgen.watch.record import Recording, Step

FILM_BYTES, SEEN_BYTES = 4_000_000, 1_500_000  # of the encoded frames and observations
MAP_SIDE = 256  # pixels
DIGITS = 3  # of numbers in the page


def inspector_page(recordings: Sequence[Recording], title: str = "") -> str:
    """Return a self-contained page that shows one episode, or several side by side."""
    heading = title or " and ".join(heading_of(recording) for recording in recordings)
    return render("watch/page.html", title=heading, group=player_group([player(one) for one in recordings]))


def player_assets() -> Markup:
    """Return the style and script of the players, to include once per page."""
    return render("watch/assets.html")


def player_group(players: Sequence[Markup], autoplay: bool = False) -> Markup:
    """Return players side by side that step together; with `autoplay` they start when the page opens."""
    return render("watch/group.html", players=players, autoplay=autoplay)


def player(recording: Recording) -> Markup:
    """Return one episode as an HTML fragment."""
    return render("watch/player.html", heading=heading_of(recording), data=player_data(recording))


def players_in(page: str) -> list[Markup]:
    """Return the players of an existing inspector page, to include them in another page."""
    found = re.findall(r'<section class="xg-player".*?</section>', page, re.DOTALL)  # < is escaped in their data
    return [Markup(text) for text in found]


def heading_of(recording: Recording) -> str:
    """Return the agent, environment and level."""
    return f"{recording.agent} on {level_text(recording)}"


def level_text(recording: Recording) -> str:
    """Return the environment and level."""
    kind = {"train": ", a training level", "test": ", an unseen level"}.get(recording.split, "")
    return recording.env + (f" level {recording.level}{kind}" if recording.level is not None else "")


def player_data(recording: Recording) -> dict[str, Any]:
    """Return a recording as JSON data for player.js."""
    rows, level_map = recording.actions, recording.level_map
    return {
        "agent": recording.agent,
        "place": level_text(recording),
        "level": recording.level,
        "seed": recording.seed,
        "solved": recording.solved,
        "return": round(recording.episode_return, DIGITS),
        "actions": rows.actions,
        "rows": rows.rows,
        "rowOf": rows.row_of,
        **recording.ensemble._asdict(),
        "steps": [_step_data(recording, step) for step in recording.steps],
        "film": encode_film(recording.film, FILM_BYTES),
        "seen": encode_film(recording.seen, SEEN_BYTES),
        "map": level_map
        and {
            "picture": encode_picture(level_map.picture, MAP_SIDE),
            "rows": level_map.rows,
            "columns": level_map.columns,
            "reachable": level_map.reachable,
        },
    }


def _step_data(recording: Recording, step: Step) -> dict[str, Any]:
    """Return one step without empty values; `member` is omitted if it is the leader."""
    reason = step.reason
    data = {
        "votes": reason.votes,
        "agrees": [int(agrees) for agrees in reason.agrees],
        "setAside": int(reason.is_set_aside),
        "hedged": int(reason.is_hedged),
        "lasts": reason.lasts,
        "turn": reason.turn,
        "probability": _by_row(recording, reason.probability),
        "explorer": _by_row(recording, reason.explorer),
        "reward": round(step.reward, DIGITS),
        "place": step.position,
    }
    kept = {name: value for name, value in data.items() if value}
    member = {} if reason.member in (None, recording.ensemble.leader) else {"member": reason.member}
    value = {} if reason.value is None else {"value": round(reason.value, DIGITS)}
    return {"who": reason.who, "action": step.action, **member, **kept, **value}


def _by_row(recording: Recording, probability: Sequence[float]) -> list[float]:
    """Sum probabilities of actions `[A]` over the rows in which they are shown."""
    rows = recording.actions
    total = np.bincount(rows.row_of, probability, len(rows.rows)) if probability else np.zeros(0)
    return [round(share, DIGITS) for share in total.tolist()]
