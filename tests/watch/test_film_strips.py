"""Encoded strips decode to the frames; a small size limit reduces quality, not the number of frames."""

import base64
import io
from typing import Any

import numpy as np
import pytest
from numpy import ndarray
from PIL import Image

from expgen.watch.film import Film, encode_film, encode_picture


def decoded(uri: str) -> ndarray:
    head, _, body = uri.partition(",")
    assert head == "data:image/webp;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(body))).convert("RGB"))


def assembled(data: dict[str, Any], frame: int) -> ndarray:
    """Decode a frame as player.js does."""
    kept, tile = data["frames"][frame], data["tile"]
    picture = decoded(data["first"]).copy()
    if data["strips"][kept]:
        strip = decoded(data["strips"][kept])
        wide = strip.shape[1] // tile
        for at, where in enumerate(data["tiles"][kept]):
            (row, column), (top, left) = divmod(at, wide), divmod(where, data["columns"])
            part = strip[row * tile : (row + 1) * tile, column * tile : (column + 1) * tile]
            picture[top * tile : (top + 1) * tile, left * tile : (left + 1) * tile] = part
    return picture[: data["height"], : data["width"]]


def film_of(frames: Any) -> Film:
    film = Film()
    for frame in frames:
        film.append(frame)
    return film


@pytest.mark.parametrize(("height", "width"), [(11, 11), (64, 64), (50, 33), (1, 3)])
def test_small_changes_are_encoded_exactly(height: int, width: int) -> None:
    rng = np.random.default_rng(0)
    frames = [rng.integers(256, size=(height, width, 3), dtype=np.uint8)]
    for _ in range(6):
        frames.append(frames[0].copy())
        frames[-1][rng.integers(height, size=3), rng.integers(width, size=3)] = rng.integers(256, size=(3, 3))
    frames.append(255 - frames[0])  # all tiles changed
    data = encode_film(film_of([*frames, frames[2]]), 10**6)
    for t, frame in enumerate([*frames, frames[2]]):
        assert (assembled(data, t) == frame).all()
    assert data["tiles"][0] == [] and data["frames"][-1] == data["frames"][2]


def test_encoding_stores_only_changed_tiles() -> None:
    still = np.random.default_rng(0).integers(256, size=(512, 512, 3), dtype=np.uint8)
    moved = still.copy()
    moved[100:110, 200:210] = 0
    data = encode_film(film_of([still, moved]), 10**7)
    assert data["tiles"][1] == [3 * 16 + 6] and len(data["strips"][1]) < 10_000 < len(data["first"])


def test_large_films_are_encoded_in_a_smaller_format() -> None:
    frames = np.random.default_rng(0).integers(256, size=(3, 512, 512, 3), dtype=np.uint8)  # noise: the worst case
    rich, poor = (encode_film(film_of(frames), budget) for budget in (10**8, 100_000))
    assert rich["width"] == 512 > poor["width"] and len(poor["frames"]) == 3
    assert assembled(poor, 2).shape == (poor["height"], poor["width"], 3)
    assert (assembled(rich, 2) == frames[2]).all()


def test_encode_picture_keeps_the_aspect_ratio() -> None:
    assert decoded(encode_picture(np.zeros((512, 128, 3), np.uint8), 256)).shape == (256, 64, 3)
