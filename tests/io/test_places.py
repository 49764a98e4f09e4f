"""The line that an error names is the line of its key, and none where that is not certain."""

import pytest

from hockeystick.errors import PlanFileError
from hockeystick.io.places import placed, said_at
from hockeystick.io.plan_file import plan_in

TEXT = '''notes = """
noise_multiplier = 1
[dpsgd]
"""
dpsgd.noise_multiplier = 2
[[release]]
mechanism = "Gaussian"
noise_multiplier = 3  # noise_multiplier = 4
[[release]]
mechanism = "Composed"
parts = [{mechanism = "Gaussian", noise_multiplier = -1}]
[[release]]
mechanism = "Gaussian"
"noise_multiplier" = -1
[release.inner]
noise_multiplier = 9
'''


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("[dpsgd]", 5),
        ("[[release]] number 1 (Gaussian)", 8),
        ("[[release]] number 2, parts[0] (Gaussian)", 11),
        ("[[release]] number 3", 14),
        ("[[release]] number 3, inner", 16),
        ("[[release]] number 4", None),
        ("the top level", None),
        ("somewhere else", None),
    ],
)
def test_the_line_of_a_key_is_the_one_that_gives_the_table_that_key(where: str, line: int) -> None:
    assert said_at(TEXT.encode(), placed("wrong", where, "noise_multiplier")) == (line, "wrong")


def test_the_line_stands_before_what_is_wrong_with_it() -> None:
    text = "[[release]]\nmechanism = 'Laplace'\nscale = 1\n" * 2 + "repeat = -3"
    with pytest.raises(PlanFileError, match=r"^x:7: \[\[release\]\] number 2: repeat must be an"):
        plan_in(text.encode(), "x")
    both = "[dpsgd]\nsteps = 1\nrate = 0.1\nnoise_multiplier = 1\nepochs = 2"
    with pytest.raises(PlanFileError, match=r"^x:2: .*\(steps on line 2, epochs on line 5\)$"):
        plan_in(both.encode(), "x")
    with pytest.raises(PlanFileError, match=r"^x: \[\[release\]\] number 1 \(Laplace\): scale"):
        plan_in(text.replace("-3", "1").encode(), "x", numbers={"release[0].scale": -1})
