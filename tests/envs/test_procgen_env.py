"""library_range: level sets as ranges of ProcGen's library; does not need the library."""

import pytest

from expgen.envs.levels import SEED_LIMIT, LevelSet
from expgen.envs.procgen_env import library_range
from expgen.errors import InputError


def drawn(start: int, num: int) -> dict[str, int]:
    return {"start_level": start, "num_levels": num}


@pytest.mark.parametrize(
    ("levels", "options", "replaces"),
    [
        (LevelSet(range(200)), drawn(0, 200), False),
        (LevelSet(range(1000, 1500)), drawn(1000, 500), False),
        (LevelSet((7, 5, 6)), drawn(5, 3), False),  # a list without gaps, in any order
        (LevelSet((3,)), drawn(3, 1), False),
        (LevelSet((3, 9)), drawn(3, 7), True),
        (LevelSet((SEED_LIMIT - 1, 0)), drawn(0, SEED_LIMIT), True),
        (LevelSet(None), drawn(0, 0), False),  # num_levels 0 means all levels
        (LevelSet(None, excluded=range(200)), drawn(0, 0), True),
        (LevelSet(None, excluded=(4, 9)), drawn(0, 0), True),
    ],
)
def test_library_range_encloses_the_level_set(levels: LevelSet, options: dict[str, int], replaces: bool) -> None:
    assert library_range(levels, can_replace=True) == (options, replaces)


@pytest.mark.parametrize(
    ("levels", "options"),
    [
        (LevelSet(range(20, 40)), drawn(20, 20)),
        (LevelSet(None), drawn(0, 0)),
        (LevelSet(None, excluded=range(200)), drawn(200, SEED_LIMIT - 200)),  # the remaining levels are one range
    ],
)
def test_library_range_without_replacement_accepts_contiguous_sets(levels: LevelSet, options: dict[str, int]) -> None:
    assert library_range(levels, can_replace=False) == (options, False)


@pytest.mark.parametrize(
    "levels", [LevelSet((3, 9)), LevelSet(None, excluded=range(5, 9)), LevelSet(None, excluded=(0, 1))]
)
def test_library_range_without_replacement_rejects_gaps(levels: LevelSet) -> None:
    with pytest.raises(InputError, match="levels has gaps, but use_generated_assets is True"):
        library_range(levels, can_replace=False)
