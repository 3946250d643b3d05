"""Film returns its frames and stores equal ones once."""

import numpy as np
import pytest

from expgen.watch.film import Film


def test_film_returns_its_frames_and_stores_equal_ones_once() -> None:
    rng = np.random.default_rng(0)
    one, two = rng.integers(256, size=(2, 5, 7, 3), dtype=np.uint8)
    film = Film()
    for picture in (one, two, one.copy(), two):
        film.append(picture)
    assert len(film) == 4 and len(film.kept) == 2 and film.index == [0, 1, 0, 1]
    for frame, picture in enumerate((one, two, one, two)):
        assert (film[frame] == picture).all()


def test_film_copies_the_frame_buffer() -> None:
    buffer, film = np.zeros((4, 4, 3), np.uint8), Film()
    film.append(buffer)
    buffer += 1
    assert film[0].max() == 0


@pytest.mark.parametrize("picture", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((5, 4, 3), np.uint8)])
def test_film_rejects_other_shapes_and_types(picture: np.ndarray) -> None:
    film = Film()
    film.append(np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(ValueError, match="accepted"):
        film.append(picture)
