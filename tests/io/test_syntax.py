"""A text that is no TOML is told with its line."""

import pytest

from hockeystick.errors import PlanFileError
from hockeystick.io.plan_file import plan_in

LINES = [
    ("delta = 0.001%", "line 2, column 14), in 'delta = 0.001%'"),
    ("[[release]", "line 2, column 10), in '[[release]'"),
    ("a = 1\na = 2", "line 3, column 6), in 'a = 2'"),
    ('title = "ours', "line 2, column 14), in 'title = \"ours'"),
]


@pytest.mark.parametrize(("text", "told"), LINES)
def test_a_syntax_error_shows_its_line(text: str, told: str) -> None:
    with pytest.raises(PlanFileError, match=r"^x: a plan file must be valid TOML: ") as error:
        plan_in(f"# first\n{text}\n".encode(), "x")
    assert told in str(error.value)
