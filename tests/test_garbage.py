"""Garbage and extreme numbers: a documented error or an ordered interval."""

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Final

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import hockeystick as hs

NAMES: Final = vars(math) | {"hs": hs, "Decimal": Decimal, "Fraction": Fraction}


def complaint(call: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "delta at epsilon")
            return verdict(eval(call, dict(NAMES)))
    except hs.HockeystickError as error:
        return None if "\n" not in str(error) else f"more than one line: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def verdict(answer: object) -> str | None:
    if isinstance(answer, tuple):
        said = [verdict(row.answer) for row in answer if row.answer is not None]
        return next((bad for bad in said if bad), None)
    if isinstance(answer, hs.Approximate):
        return None if answer.value >= 0.0 else f"not a number: {answer!r}"
    if not isinstance(answer, hs.Certified):
        return f"not an answer: {answer!r}"
    if not 0.0 <= answer.lower <= answer.estimate <= answer.upper:
        return f"out of order: {answer!r}"
    return f"beyond 1: {answer!r}" if answer.quantity == "delta" and answer.upper > 1 else None


def powers(low: float, high: float) -> st.SearchStrategy[str]:
    """Texts of floats, log-uniform between two powers of ten."""
    return st.floats(low, high).map(lambda x: repr(10.0**x))


RATES = st.one_of(
    powers(-300, 0), powers(-6, 0), powers(-16, -1).map(lambda x: repr(1.0 - float(x)))
)
NOISES = st.one_of(powers(-12, 12), powers(-1.5, 2))
STEPS = st.one_of(powers(0, 15).map(lambda x: str(int(float(x)))), st.sampled_from("0123"))
DELTAS = powers(-300, 0)
EPSILONS = st.one_of(powers(-12, 6), powers(-2, 2), st.just("0.0"))
ACCOUNTANTS = st.sampled_from(
    ["auto", "closed-form", "contour", "parts", "rdp", "gdp", "edgeworth", "berry-esseen"]
)


@st.composite
def extreme_calls(draw: st.DrawFn) -> str:
    noise, rate, steps = draw(NOISES), draw(RATES), draw(STEPS)
    plan = f"hs.PoissonSubsampled(hs.Gaussian({noise}), {rate}) ** {steps}"
    if draw(st.booleans()):
        plan = f"({plan}) @ hs.Gaussian({draw(NOISES)})"
    name = draw(st.sampled_from(["delta", "epsilon"]))
    value = draw(DELTAS if name == "delta" else EPSILONS)
    if draw(st.sampled_from([True, False, False])):
        return f"hs.compare({plan}, {name}={value})"
    question = "epsilon" if name == "delta" else "delta"
    return f"hs.{question}({plan}, {value}, accountant={draw(ACCOUNTANTS)!r})"


STRANGE = """
    None True False nan inf -inf -0.0 1j () [] {} b'' object() object hs hs.Gaussian
    hs.Gaussian(1) Decimal('NaN') Decimal('sNaN') Decimal('1e999999') Decimal('0.5')
    Fraction(1,3) Fraction(-7,2) 10**400 -10**400 1e16 5e-324 1.7e308 -1e-300 0 1 2
"""
NONSENSE = st.one_of(
    st.sampled_from(STRANGE.split()),
    st.text(max_size=12).map(repr),
    st.floats().map(repr),
    st.integers().map(repr),
)


@st.composite
def garbage_calls(draw: st.DrawFn) -> str:
    usual = {
        "noise": "1.1",
        "rate": "0.01",
        "steps": "100",
        "value": "0.1",
        "accountant": "'auto'",
        "adjacency": "'add-remove'",
    }
    for place in draw(st.lists(st.sampled_from(sorted(usual)), min_size=1, max_size=2)):
        usual[place] = draw(NONSENSE)
    noise, rate, steps, value, accountant, adjacency = usual.values()
    plan = draw(
        st.sampled_from(
            [
                f"hs.PoissonSubsampled(hs.Gaussian({noise}), {rate}, {adjacency}) ** {steps}",
                f"hs.Repeated(hs.Gaussian({noise}), {steps}) @ hs.Gaussian({rate})",
                f"hs.DPSGD(noise_multiplier={noise}, rate={rate}, steps={steps}, "
                f"adjacency={adjacency})",
                f"hs.DPSGD(noise_multiplier={noise}, examples={rate}, batch_size={steps}, "
                f"epochs={value})",
                f"hs.Composed([hs.Gaussian({noise}), {rate}])",
                noise,
            ]
        )
    )
    question = draw(st.sampled_from(["epsilon", "delta"]))
    if draw(st.booleans()):
        return f"hs.compare({plan}, {draw(st.sampled_from(['epsilon', 'delta']))}={value})"
    return f"hs.{question}({plan}, {value}, accountant={accountant})"


@given(call=garbage_calls())
@settings(max_examples=300)
def test_garbage_gets_a_documented_error_or_an_ordered_answer(call: str) -> None:
    found = complaint(call)
    # Python itself refuses a minus or a power of what is no mechanism before the library is asked.
    assert found is None or found.startswith("TypeError: unsupported operand"), call


@given(call=extreme_calls())
@settings(max_examples=60, phases=(Phase.explicit, Phase.generate))
def test_extreme_numbers_get_an_ordered_answer(call: str) -> None:
    assert complaint(call) is None, call


SINGLED_OUT = [
    "hs.epsilon(hs.Gaussian(0), 1e-5, accountant='rdp')",
    "hs.compare(hs.Gaussian(0), delta=1e-5)",
    "hs.delta(hs.PoissonSubsampled(hs.Gaussian(1.5), 0.1), 0.7, accountant='rdp')",
    "hs.compare(hs.PoissonSubsampled(hs.Gaussian(1.5), 0.1), epsilon=0.7)",
    "hs.epsilon(hs.PoissonSubsampled(hs.Gaussian(1.1), 1e-20) ** 100, 1e-30, accountant='rdp')",
    "hs.delta(hs.PoissonSubsampled(hs.Gaussian(0.3), 1e-6), 0.0, accountant='contour')",
    "hs.epsilon(hs.PoissonSubsampled(hs.Gaussian(0.05), 0.015), 1e-120, accountant='rdp')",
    "hs.epsilon(hs.PoissonSubsampled(hs.Gaussian(0.46), 4.5e-7) ** 10, 1e-160)",
    "hs.delta(hs.PoissonSubsampled(hs.Gaussian(0.11), 0.9986) ** 222236219, 734144.0)",
    "hs.epsilon(hs.PoissonSubsampled(hs.Gaussian(9e-11), 0.84) ** 2, 1e-62)",
    "hs.epsilon(hs.PoissonSubsampled(hs.Gaussian(0.12), 4e-5) ** 705369455625, 6e-190, "
    "accountant='gdp')",
    "hs.epsilon(hs.PoissonSubsampled(hs.Gaussian(0.67), 2e-4) ** 3914553597, 1e-212, "
    "accountant='rdp')",
    "hs.epsilon(hs.PoissonSubsampled(hs.Gaussian(25.0), 1.6e-12) ** 67835, 1e-117, "
    "accountant='contour')",
    "hs.epsilon(hs.PoissonSubsampled(hs.Gaussian(0.032), 0.9995) ** 20327332519, 3e-59)",
    "hs.epsilon(hs.PoissonSubsampled(hs.Gaussian(717), 2.5e-10) ** 697, 1.3e-304)",
    "hs.delta(hs.PoissonSubsampled(hs.Gaussian(318), 1.1e-8) ** 2560 @ "
    "hs.PoissonSubsampled(hs.Gaussian(0.31), 0.022) ** 352172, 0.59)",
    "hs.delta(hs.PoissonSubsampled(hs.Gaussian(20.5), 7e-4) ** 3759, 790043.0)",
    "hs.epsilon(hs.PoissonSubsampled(hs.Gaussian(0.0595), 0.999999) ** 3334955, 4.4e-90)",
]


@pytest.mark.parametrize("call", SINGLED_OUT)
def test_what_is_easy_to_get_stuck_in_is_answered(call: str) -> None:
    assert complaint(call) is None
