"""A text that is no TOML is told with its line, and with what to write instead."""

import pytest

from hockeystick.errors import PlanFileError
from hockeystick.io.plan_file import plan_in

LINES = [
    ("delta = 0.001%", "'delta = 0.001%': write it as 1e-05"),
    ("delta = 1/60000", "write the number itself, 1.66666666666667e-05"),
    ("examples = 60,000  # all", "write 60000"),
    ("[[release]", None),
    ('title = "ours', 'end the text with ", on the same line'),
    ("a = 1\na = 2", "in 'a = 2': a is there twice"),
    ("[[release]\nscale = 1", "in '[[release]': write [[release]]"),
    ("orders = [2 3]", "write a comma between the values of an array"),
    (
        "dpsgd:\n  steps: 9\nreleases:\n  - mechanism: Laplace\n    scale: 1",
        "and tables as [dpsgd] and [[release]]",
    ),
]


@pytest.mark.parametrize(("text", "hint"), LINES)
def test_a_syntax_error_shows_its_line_and_what_to_write(text: str, hint: str | None) -> None:
    with pytest.raises(PlanFileError, match=r"^x: a plan file must be valid TOML: ") as error:
        plan_in(text.encode() if text[0] in "{<" else f"# first\n{text}\n".encode(), "x")
    assert hint is None or hint in str(error.value)
