"""LevelSet: parsing, set operations and draws."""

import time
from typing import Any

import numpy as np
import pytest
import torch

from expgen.envs.levels import MAX_LEVELS, SEED_LIMIT, LevelSet
from expgen.errors import InputError


@pytest.mark.parametrize(
    "given, seeds",
    [
        ("200", range(200)),
        (200, range(200)),
        (np.int64(200), range(200)),
        (" 1000:500 ", range(1000, 1500)),
        ("3,7,9", (3, 7, 9)),
        ("3, 7, 9", (3, 7, 9)),
        ("5,", (5,)),
        (range(4, 8), range(4, 8)),
        (range(0, 10, 5), (0, 5)),
        ([9, 2], (9, 2)),
        (np.array([1, 2]), (1, 2)),
        ("all", None),
        (LevelSet((1, 2)), (1, 2)),
    ],
)
def test_level_set_parses_texts_counts_and_lists(given: object, seeds: object) -> None:
    assert LevelSet.parse(given).seeds == seeds  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given, words",
    [
        ("many", "accepted: COUNT, START:COUNT, a list A,B,C, or all"),
        ("1:2:3", "accepted: COUNT"),
        ("1,,2", "accepted: COUNT"),
        (",", "accepted: COUNT"),
        ("1.5", "accepted: COUNT"),
        ("", "accepted: COUNT"),
        ("0", "test_levels is '0', which names 0 levels; accepted: at least one level"),
        ("-3", "is '-3', which names 0 levels"),
        ("10:0", "is '10:0', which names 0 levels"),
        ("-1:5", "names level -1; accepted: levels in 0.."),
        ("3,-4", "names level -4; accepted: levels in 0.."),
        (str(SEED_LIMIT + 1), f"names level {SEED_LIMIT}; accepted: levels in 0..{SEED_LIMIT - 1}"),
        ([], "is [], which names 0 levels"),
        ("3,7,3", "names a level twice"),
    ],
)
def test_level_set_rejects_invalid_texts_and_names_the_field(given: str, words: str) -> None:
    with pytest.raises(InputError, match="test_levels") as caught:
        LevelSet.parse(given, "test_levels")
    assert words in str(caught.value)


def test_level_set_of_a_range_with_a_step_keeps_its_levels() -> None:
    levels = LevelSet(range(0, 10, 2))
    assert LevelSet.parse(str(levels)) == levels and 2 in levels and 3 not in levels
    assert not levels.overlaps(LevelSet.parse("1,3"))


@pytest.mark.parametrize("given", ["200", "1000:500", "3,7,9", "5,", "0:1", "all"])
def test_level_set_text_round_trips(given: str) -> None:
    levels = LevelSet.parse(given)
    assert LevelSet.parse(str(levels)) == levels


def test_level_set_accepts_long_ranges_fast_and_rejects_longer_ones() -> None:
    started = time.perf_counter()
    assert len(LevelSet.parse(MAX_LEVELS)) == MAX_LEVELS
    with pytest.raises(InputError, match="levels names 2147483647 levels; accepted: at most 10000000, or all"):
        LevelSet.parse(SEED_LIMIT)
    with pytest.raises(InputError, match="levels names 1073741823 levels; accepted: at most 10000000, or all"):
        LevelSet.parse(range(0, SEED_LIMIT - 1, 2))
    assert time.perf_counter() - started < 0.5


def test_level_set_length_and_membership() -> None:
    train, rest = LevelSet.parse("10:5"), LevelSet.parse("all").without(LevelSet.parse("10:5"))
    assert len(train) == 5 and 10 in train and 15 not in train
    assert len(rest) == SEED_LIMIT - 5 and 10 not in rest and 15 in rest
    with pytest.raises(ValueError, match="only be excluded from"):
        train.without(rest)


@pytest.mark.parametrize(
    "one, other, expected",
    [
        ("200", "200:50", False),
        ("200", "199:50", True),
        ("200", "500,199", True),
        ("200", "500,200", False),
        ("1,2,3", "3,4", True),
        ("1,2", "3,4,5", False),
        ("all", "7,", True),
        ("all", "all", True),
    ],
)
def test_level_set_overlap_is_symmetric(one: str, other: str, expected: bool) -> None:
    first, second = LevelSet.parse(one), LevelSet.parse(other)
    assert first.overlaps(second) == second.overlaps(first) == expected


def test_all_without_training_levels_does_not_overlap_them() -> None:
    train = LevelSet.parse("200")
    rest = LevelSet.parse("all").without(train)
    assert not rest.overlaps(train) and not train.overlaps(rest)
    assert rest.overlaps(LevelSet.parse("199:2"))


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ([1.5], "levels names level 1.5; accepted: whole numbers"),
        ([3, "4"], "levels names level '4'; accepted: whole numbers"),
        (np.array([1.0]), "levels names level .*1.0.*; accepted: whole numbers"),
        (torch.tensor([1.5, 2.7]), "levels names level .*1.5.*; accepted: whole numbers"),
        (np.array([[1, 2], [3, 4]]), "levels is .*1, 2.*; accepted: whole numbers"),
        (1.5, "levels is 1.5; accepted: whole numbers, or COUNT"),
        (None, "levels is None; accepted"),
    ],
)
def test_level_set_rejects_levels_that_are_not_integers(levels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        LevelSet.parse(levels)
    assert LevelSet.parse(np.array([4, 7])).seeds == (4, 7)


@pytest.mark.parametrize("levels", ["7", "100:7", "1,5,8,9,20,21,22"])
@pytest.mark.parametrize("num", [3, 7, 24])
def test_draw_returns_levels_equally_often(levels: str, num: int) -> None:
    level_set = LevelSet.parse(levels)
    drawn = level_set.draw(num, np.random.default_rng(0))
    assert drawn.shape == (num,) and drawn.dtype == np.int64
    assert level_set.seeds is not None and set(drawn.tolist()) <= set(level_set.seeds)
    count = [int((drawn == seed).sum()) for seed in level_set.seeds]
    assert sum(count) == num and max(count) - min(count) <= 1


def test_draw_depends_only_on_its_generator() -> None:
    levels = LevelSet.parse("50")
    one, again, other = (levels.draw(80, np.random.default_rng(seed)).tolist() for seed in (0, 0, 1))
    assert one == again != other
    assert one != sorted(one)


def test_draw_from_all_never_returns_excluded_levels() -> None:
    drawn_first = LevelSet.parse("all").draw(100, np.random.default_rng(3))
    rest = LevelSet.parse("all").without(LevelSet.parse(drawn_first[::2].tolist()))
    drawn = rest.draw(100, np.random.default_rng(3))
    assert not set(drawn.tolist()) & set(drawn_first[::2].tolist())
    assert drawn[1::2].tolist() == drawn_first[1::2].tolist()
