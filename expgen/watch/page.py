"""The inspector: a recorded episode as a page of its own, or as a player inside another page.

    page = inspector_page([recording])                         # a whole HTML document

    head = player_assets()                                     # once, in another page's <head>
    body = player(recording)                                   # wherever an episode shall be shown
    body = player_group([player(ppo), player(expgen)])         # side by side, stepped together
    body = player_group(players_in(page))                      # of a page written earlier

Nothing is fetched: pictures are data URIs, and the page's own policy forbids the rest.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from expgen.html import render
from expgen.watch.film import encode_film, encode_picture
from expgen.watch.record import Recording, Step

FILM_BYTES, SEEN_BYTES = 4_000_000, 1_500_000  # of text, for the large pictures and for what the agent sees
MAP_SIDE = 256  # pixels
DIGITS = 3  # of a probability


def inspector_page(recordings: Sequence[Recording], title: str = "") -> str:
    """A self-contained document that shows one episode, or several side by side; `title` is its name."""
    heading = title or " and ".join(heading_of(recording) for recording in recordings)
    return render("watch/page.html", title=heading, group=player_group([player(one) for one in recordings]))


def player_assets() -> Markup:
    """The style and the script that players need, once in a page."""
    return render("watch/assets.html")


def player_group(players: Sequence[Markup], autoplay: bool = False) -> Markup:
    """Players side by side that step together; with `autoplay` they begin by themselves."""
    return render("watch/group.html", players=players, autoplay=autoplay)


def player(recording: Recording) -> Markup:
    """One episode, as an HTML fragment."""
    return render("watch/player.html", heading=heading_of(recording), data=player_data(recording))


def players_in(page: str) -> list[Markup]:
    """The players of an inspector page that was written earlier, to put them into another page."""
    found = re.findall(r'<section class="xg-player".*?</section>', page, re.DOTALL)  # their data holds no < of its own
    return [Markup(text) for text in found]


def heading_of(recording: Recording) -> str:
    """Who plays what."""
    return f"{recording.agent} on {place_of(recording)}"


def place_of(recording: Recording) -> str:
    """The environment and the level."""
    which = {"train": ", a training level", "test": ", an unseen level"}.get(recording.split, "")
    return recording.env + (f" level {recording.level}{which}" if recording.level is not None else "")


def player_data(recording: Recording) -> dict[str, Any]:
    """A recording as the script reads it."""
    rows, level_map = recording.actions, recording.level_map
    return {
        "agent": recording.agent,
        "place": place_of(recording),
        "level": recording.level,
        "seed": recording.seed,
        "solved": recording.solved,
        "return": round(recording.episode_return, DIGITS),
        "actions": rows.actions,
        "rows": rows.rows,
        "rowOf": rows.row_of,
        **recording.cast._asdict(),
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
    """One step; what is empty is left out, and whose action was voted on where that is the leader."""
    reason = step.reason
    data = {
        "votes": reason.votes,
        "agrees": [int(does) for does in reason.agrees],
        "setAside": int(reason.is_set_aside),
        "hedged": int(reason.is_hedged),
        "lasts": reason.lasts,
        "turn": reason.turn,
        "probability": _by_row(recording, reason.probability),
        "explorer": _by_row(recording, reason.explorer),
        "reward": round(step.reward, DIGITS),
        "place": step.place,
    }
    kept = {name: value for name, value in data.items() if value}
    member = {} if reason.member in (None, recording.cast.leader) else {"member": reason.member}
    value = {} if reason.value is None else {"value": round(reason.value, DIGITS)}
    return {"who": reason.who, "action": step.action, **member, **kept, **value}


def _by_row(recording: Recording, probability: Sequence[float]) -> list[float]:
    """Probabilities of actions `[A]` → of the rows they are shown in."""
    rows = recording.actions
    total = np.bincount(rows.row_of, probability, len(rows.rows)) if probability else np.zeros(0)
    return [round(share, DIGITS) for share in total.tolist()]
