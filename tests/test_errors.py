"""The one exception that means "the user can fix this"."""

import pytest

from expgen.errors import InputError, check_choice


def test_a_choice_is_returned_or_refused_with_all_there_are():
    assert check_choice("--game", "maze", {"maze": 1, "heist": 2}) == "maze"
    with pytest.raises(InputError, match=r"^--game is 'chess'; accepted: maze, heist$"):
        check_choice("--game", "chess", ["maze", "heist"])
    assert issubclass(InputError, ValueError)
