import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.tradeoffs import GaussianTradeOff, tradeoff_of_deltas
from hockeystick.tradeoffs.attack_words import attack_in_words, percent_at_most
from hockeystick.tradeoffs.plot import plot

KINDS = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}
G = GaussianTradeOff
# Nothing is known from above.
LOOSE = tradeoff_of_deltas([(0.5, 0.01), (1.0, 1e-3)])


@pytest.fixture
def matplotlib() -> Any:
    return pytest.importorskip("matplotlib", reason="pictures need matplotlib")


def curves(axes: Any) -> list[Any]:
    """The lines of the functions: neither guessing nor the mark at a rate."""
    return [line for line in axes.get_lines() if len(line.get_xdata()) > 2]


READINGS = [
    (0.01, 0.0402064531, "At FPR 1 %, no attack finds more than 4.03 % of the members"),
    (0.01, 0.99955, "At FPR 1 %, no attack finds more than 99.96 % of the members"),
    (0.01, 1.0 - 2.0**-53, "At FPR 1 %, nothing is promised: an attack may find all members"),
    (1e-12, 5e-300, "At FPR 1e-10 %, no attack finds more than 5e-298 % of the members"),
]


@pytest.mark.parametrize(("fpr", "power", "words"), READINGS)
def test_a_reading_says_both_rates_in_per_cent(fpr: float, power: float, words: str) -> None:
    assert attack_in_words(fpr, power) == words


def test_the_share_that_is_found_is_rounded_up_and_by_little() -> None:
    for power in np.random.default_rng(3).uniform(size=200).tolist():
        shown = Decimal(percent_at_most(power).removesuffix(" %")) / 100
        assert Decimal(power) <= shown <= Decimal(power) * Decimal("1.01")


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_is_written_by_the_ending_of_its_name(
    matplotlib: Any, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / f"curve{kind.upper()}"
    plot(G(1), path=path)
    assert path.read_bytes().startswith(KINDS[kind])


def test_the_lines_are_the_proven_ends_at_every_point(matplotlib: Any) -> None:
    f = LOOSE
    axes, *_ = plot(f).axes
    (line,) = curves(axes)
    assert np.array_equal(line.get_ydata(), f(line.get_xdata()))
    (inset,) = axes.child_axes
    (line,) = curves(inset)
    assert np.array_equal(line.get_ydata(), f.power(line.get_xdata()))
    assert line.get_xdata()[0] == 1e-6
    assert (inset.get_xscale(), inset.get_yscale()) == ("log", "log")
    mark: Any = inset.get_lines()[-1]
    assert [mark.get_xdata()[0], mark.get_ydata()[0]] == [0.01, f.power(0.01)]


WRONG = [
    ({"functions": [G(1), abs]}, "f must be a trade-off function"),
    ({"path": "curve.gif"}, "path must be a file name that ends in .svg, .png or .pdf; got 'curve"),
    ({"path": "a\0.svg"}, "path must be"),
    ({"path": b"a.svg"}, "path must be"),
    ({"fpr": -0.1}, "fpr must be a number from 0 to 1; got -0.1"),
    ({"fpr": float("nan")}, "fpr must be"),
    ({"labels": "f"}, "labels must be a list of texts, as many as functions: 1; got 'f'"),
    ({"labels": ["f", "g"]}, "labels must be"),
    ({"labels": [3]}, "labels must be"),
    ({"title": 3}, "title must be a text; got 3"),
]


@pytest.mark.parametrize(("given", "told"), WRONG)
def test_wrong_arguments_are_named(given: Any, told: str) -> None:
    with pytest.raises(ParameterError) as refused:
        plot(*given.pop("functions", [G(1)]), **given)
    assert str(refused.value).startswith(told)


def test_a_missing_matplotlib_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(HockeystickError, match=r"install hockeystick\[plot\]"):
        plot(G(1))
