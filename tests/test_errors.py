"""The exceptions: one line each, naming what is wrong, and copies that stay whole."""

import copy
import pickle
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.errors import (
    HockeystickError,
    IncompatibleError,
    ParameterError,
    PlanFileError,
    UnsupportedError,
    hint,
    same_name,
)

EXAMPLES = (
    ParameterError("rate", 1.5, "a number from 0 to 1"),
    IncompatibleError("these parts differ"),
    UnsupportedError("rdp", "parts[1] (Gaussian)", "there is no analysis"),
    PlanFileError("no such file"),
)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_every_error_is_caught_by_the_base_and_survives_pickle_and_copy(error: Any) -> None:
    assert isinstance(error, HockeystickError)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


class _Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (10**40, "an integer of 133 bits"),
        (-(10**5000), "a negative integer of 16610 bits"),
        ((10**5000,), "an unprintable tuple"),
        (_Unprintable(), "an unprintable _Unprintable"),
        ("x" * 1000, "'" + "x" * 76 + "..."),
        ("two\nlines", r"'two\nlines'"),
        (2**127, str(2**127)),
    ],
    ids=["big", "negative", "nested", "unprintable", "long", "newline", "not-so-big"],
)
def test_the_value_is_shown_in_one_short_line_whatever_it_is(value: Any, shown: Any) -> None:
    assert str(ParameterError("rate", value, "small")) == f"rate must be small; got {shown}"


@pytest.mark.parametrize(
    ("name", "names", "found"),
    [
        ("noise_multiplyer", ["noise_multiplier", "rate"], "noise_multiplier"),
        ("sigma", ["noise_multiplier", "rate"], "noise_multiplier"),
        ("T", ["rate", "steps"], "steps"),
        ("n", ["rate"], None),
        ("unbounded", ["add-remove", "replace-one"], "add-remove"),
        ("Batch-Size", ["batch_size"], "batch_size"),
        ("xyz", ["rate", "steps"], None),
    ],
)
def test_the_name_that_is_meant_is_found(name: str, names: list[str], found: str | None) -> None:
    assert hint(name, names) == ("" if found is None else f" (did you mean {found!r}?)")


def test_capitals_and_dashes_make_no_other_name() -> None:
    assert same_name("zcdp", ["PureDP", "ZCDP"]) == "ZCDP"
    assert same_name("Closed_Form", ["closed-form"]) == "closed-form"
    assert same_name("rho", ["ZCDP"]) == "rho"
    assert same_name(3, ["3"]) == 3


def test_an_error_names_what_is_near() -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"\(did you mean 'poisson'\?\)"):
        hs.DPSGD(rate=0.1, steps=9, noise_multiplier=1, sampling="poison")
    with pytest.raises(AttributeError, match="nothing"):
        hs.nothing  # type: ignore[attr-defined]  # noqa: B018
