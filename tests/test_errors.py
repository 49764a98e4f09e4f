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
)

EXAMPLES = (
    ParameterError("rate", 1.5, "a number from 0 to 1"),
    IncompatibleError("these parts differ"),
    UnsupportedError("rdp", "parts[1] (Gaussian)", "there is no analysis"),
    PlanFileError("no such file"),
)


def test_parameter_error_names_the_parameter_the_value_and_what_is_allowed() -> None:
    error = ParameterError("rate", 1.5, "a number from 0 to 1")
    assert str(error) == "rate must be a number from 0 to 1; got 1.5"
    assert (error.name, error.value, error.allowed) == ("rate", 1.5, "a number from 0 to 1")


def test_a_quotient_in_quotes_and_a_number_of_batches_are_hinted_at() -> None:
    rate = "a number from 0 to 1"
    assert str(ParameterError("rate", "1/4", rate)).endswith("(write 0.25, without quotes)")
    assert str(ParameterError("rate", 98, rate)) == (
        "rate must be a number from 0 to 1; got 98 (a rate is batch size / examples: write 0.98 "
        "for 98 percent, 98/N for batches of 98 of N examples, or 1/98 for a loader of 98 batches)"
    )
    assert str(ParameterError("rate", 391, rate)).endswith(
        "write 391/N for batches of 391 of N examples, or 1/391 for a loader of 391 batches)"
    )
    assert str(ParameterError("delta", 98, rate)).endswith("; got 98")


def test_no_sampling_is_guessed_that_is_refused() -> None:
    for listed in (("poisson", "fixed-size", "revealed"), ("poisson", "two-stage")):
        allowed = f"one of {', '.join(map(repr, listed))}"
        told = str(ParameterError("sampling", "uniform", allowed)).partition("got")[2]
        assert "with-replacement" not in told
        assert ("fixed-size" in told) == ("fixed-size" in listed)


def test_a_step_by_numbers_names_what_counts_it() -> None:
    with pytest.raises(TypeError, match=r"HockeystickAccountant\); it takes mechanism, count$"):
        hs.Accountant().step(noise_multiplier=1, sample_rate=0.01)  # type: ignore[call-arg]


def test_shuffled_reports_are_named_where_batches_are_shuffled() -> None:
    with pytest.raises(IncompatibleError, match=r"ShuffledReports\(randomizer, users\)"):
        hs.mechanisms.Shuffled(hs.RandomizedResponse(1), 100)


def test_unsupported_error_names_the_accountant_the_place_and_the_reason() -> None:
    error = UnsupportedError("rdp", "parts[1]", "there is no analysis")
    assert str(error) == "accountant 'rdp' cannot account for parts[1]: there is no analysis"
    assert (error.accountant, error.path, error.reason) == (
        "rdp",
        "parts[1]",
        "there is no analysis",
    )


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_every_error_is_caught_by_the_base_and_survives_pickle_and_copy(error: Any) -> None:
    assert isinstance(error, HockeystickError)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


@pytest.mark.parametrize("kind", [ParameterError, IncompatibleError])
def test_wrong_values_are_value_errors(kind: Any) -> None:
    assert issubclass(kind, ValueError)


@pytest.mark.parametrize("kind", [UnsupportedError, PlanFileError])
def test_what_is_no_wrong_value_is_no_value_error(kind: Any) -> None:
    assert not issubclass(kind, ValueError)


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


def test_a_value_whose_text_has_several_lines_is_shown_in_one() -> None:
    class Matrix:
        def __repr__(self) -> str:
            return "[1,\n 2]"

    assert str(ParameterError("rate", Matrix(), "a number")).endswith("got [1, 2]")
