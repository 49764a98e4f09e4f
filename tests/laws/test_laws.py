"""Laws of accounting, each asked of the thing that it is about.

Laws of composition are asked of the costs of every mechanism, laws of reading of every accountant
on a few compositions; every proven accountant is held against every other on every mechanism.

A mechanism without an example, or with a parameter whose direction is not stated, fails here: an
untested pair cannot exist.
"""

import dataclasses
import math
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.accountants import ACCOUNTANTS
from hockeystick.accountants.composition import composition_of
from hockeystick.mechanisms import MECHANISMS
from hockeystick.notions import NOTIONS, ZCDP, ApproxDP, PureDP
from hockeystick.privacy_loss.core.composition import EMPTY
from tests.examples import DESCRIBED, EXAMPLES, GAUSSIANS, GUARANTEED, STEP, TRAINING

DELTA: Final = 1e-5
EPSILON: Final = 0.7
NO_NUMBER: Final = {"origin", "divergences", "tradeoff"}
PROVEN: Final = tuple(n for n, one in ACCOUNTANTS.items() if one.kind != "approximation")

# Plans composed of more than one kind of loss: those of which a law of an accountant is asked.
COMPOSITIONS: Final[tuple[hs.Mechanism, ...]] = (
    STEP**300 @ hs.Gaussian(8.0),
    hs.Laplace(2.0) ** 5 @ hs.RandomizedResponse(0.6),
    hs.Gaussian(5.0) @ ZCDP(0.05),
    ApproxDP(0.1, 1e-15) ** 20 @ PureDP(0.2) @ ApproxDP(0.0, 1e-14),
    hs.mechanisms.RevealedSample(hs.Gaussian(2.0), 0.4) @ hs.Gaussian(4.0) ** 3,
    hs.Parallel((STEP**50, TRAINING), split="client") @ hs.Gaussian(6.0),
)

# The tests of one mechanism are neighbours, which share its answers.
each_mechanism = pytest.mark.parametrize("plan", EXAMPLES, ids=str, scope="module")
each_composition = pytest.mark.parametrize("plan", COMPOSITIONS, ids=str)
# "auto" gives the answer of one of the others, which a law of its own states.
each_engine = pytest.mark.parametrize("accountant", [n for n in ACCOUNTANTS if n != "auto"])
each_proven = pytest.mark.parametrize("accountant", PROVEN)


def answer(
    plan: hs.Mechanism, accountant: str, quantity: str = "epsilon", value: float = DELTA
) -> hs.Certified | hs.Approximate | None:
    """Return an accountant's answer, or None where it knows no analysis."""
    return _answer(plan, accountant, quantity, value)


@cache
def _answer(
    plan: hs.Mechanism, accountant: str, quantity: str, value: float
) -> hs.Certified | hs.Approximate | None:
    """Return the answer, which a law asks in its own way, once."""
    question = hs.epsilon if quantity == "epsilon" else hs.delta
    try:
        return question(plan, value, accountant=accountant)
    except hs.errors.UnsupportedError:
        return None


def proven(plan: hs.Mechanism, accountant: str, quantity: str, value: float) -> hs.Certified | None:
    """Return an answer that is no approximation, or None."""
    found = answer(plan, accountant, quantity, value)
    assert found is None or isinstance(found, hs.Certified)
    return found


def ends(found: hs.Certified | hs.Approximate | None) -> tuple[float, ...] | None:
    """Return the numbers of an answer."""
    if found is None:
        return None
    if isinstance(found, hs.Approximate):
        return (found.value,)
    return (found.lower, found.estimate, found.upper)


def at_most(first: Any, second: Any) -> bool:
    """Return whether an answer is at most another, as far as their numbers can tell."""
    less, more = ends(first), ends(second)
    assert less is not None
    assert more is not None
    slack = 1 + 1e-9
    estimates = less[len(less) // 2], more[len(more) // 2]
    # An estimate is known as well as its interval is narrow, and no worse than one in a million.
    widths = (less[-1] - less[0]) + (more[-1] - more[0])
    known = min(widths, 1e-6 * estimates[1]) if widths < math.inf else 0.0
    return less[0] <= more[-1] * slack and estimates[0] <= estimates[1] * slack + known


def test_every_registered_mechanism_has_an_example() -> None:
    assert {type(example).__name__ for example in DESCRIBED} == set(MECHANISMS)


def test_every_registered_notion_has_an_example() -> None:
    assert [type(example).__name__ for example in GUARANTEED] == list(NOTIONS)


@each_mechanism
def test_a_description_says_of_every_number_which_way_the_cost_goes(plan: Any) -> None:
    stated = [*plan.rises_with, *plan.falls_with, *plan.unordered]
    values = {field.name: getattr(plan, field.name) for field in dataclasses.fields(plan)}
    numbers = {
        name
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    assert len(stated) == len(set(stated))
    assert numbers <= set(stated) <= set(values)


@each_mechanism
def test_every_example_has_an_answer_by_the_accountants_that_take_everything(
    plan: hs.Mechanism,
) -> None:
    takers = ("auto", "rdp", "gdp", "contour") if plan in GAUSSIANS else ("auto", "rdp")
    for accountant in takers:
        for question in (("epsilon", DELTA), ("delta", EPSILON)):
            found = ends(answer(plan, accountant, *question))
            assert found is not None
            assert all(0.0 <= number < math.inf for number in found[1:])
            # Epsilon is 0 only where delta covers all that there is to tell.
            if 0.0 in found[1:]:
                assert question[0] == "epsilon"
                assert hs.delta(plan, epsilon=0.0).upper <= DELTA


def parts(plan: hs.Mechanism) -> set[tuple[frozenset[Any], frozenset[Any]]]:
    """Return the losses of a plan with their counts, in each place, without their order."""
    return {
        (frozenset(one.removing), frozenset(one.adding))
        for one in composition_of(plan, "auto").branches
    }


@each_mechanism
@pytest.mark.parametrize("count", [1, 5])
def test_a_power_is_the_composition_of_as_many(plan: hs.Mechanism, count: int) -> None:
    assert composition_of(plan**count, "auto") == composition_of(
        hs.Composed((plan,) * count), "auto"
    )


@each_mechanism
def test_splitting_a_count_changes_nothing(plan: hs.Mechanism) -> None:
    assert composition_of(plan**7, "auto") == composition_of(plan**3 @ plan**4, "auto")


@each_mechanism
def test_no_run_costs_nothing(plan: hs.Mechanism) -> None:
    assert composition_of(plan**0, "auto") == EMPTY


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_every_accountant_finds_that_no_run_costs_nothing(accountant: str) -> None:
    assert ends(answer(STEP**0, accountant)) in ((0.0,), (0.0, 0.0, 0.0))


def _composable(first: hs.Mechanism, second: hs.Mechanism) -> bool:
    """Return whether two different examples are about the same neighbours, unit and parties."""
    try:
        first @ second
    except hs.errors.IncompatibleError:
        return False
    return first != second


def _pairs() -> Iterator[tuple[hs.Mechanism, hs.Mechanism]]:
    """Every example with a training plan and the next example that it can be composed with.

    Not every two examples: the number of pairs grows as that of the examples does.
    """
    met: set[frozenset[hs.Mechanism]] = set()
    for place, first in enumerate(EXAMPLES):
        others = (*EXAMPLES[place + 1 :], *EXAMPLES[:place])
        neighbours = [other for other in others if _composable(first, other)][:1]
        for second in (*neighbours, TRAINING):
            if _composable(first, second) and {first, second} not in met:
                met.add(frozenset((first, second)))
                yield first, second


PAIRS: Final = tuple(_pairs())


def test_every_example_is_in_a_pair() -> None:
    assert {example for pair in PAIRS for example in pair} == set(EXAMPLES)


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=str)
def test_the_order_does_not_matter(first: hs.Mechanism, second: hs.Mechanism) -> None:
    assert parts(first @ second) == parts(second @ first)


# One tuning alone is what "selection" is for.
@pytest.mark.parametrize("accountant", [name for name in ACCOUNTANTS if name != "selection"])
def test_every_accountant_answers_for_a_composition(accountant: str) -> None:
    assert any(answer(plan, accountant) is not None for plan in COMPOSITIONS)


@each_engine
@each_composition
def test_no_accountant_knows_an_order(plan: Any, accountant: str) -> None:
    one, other = answer(plan, accountant), answer(hs.Composed(plan.parts[::-1]), accountant)
    if one is None:
        assert other is None
        return
    assert at_most(one, other)
    assert at_most(other, one)


# An expansion in moments knows no order: where it is good it hardly differs from the truth.
@pytest.mark.parametrize(
    "accountant", [name for name in ACCOUNTANTS if name not in ("auto", "edgeworth")]
)
@each_composition
@pytest.mark.parametrize("question", [("epsilon", DELTA), ("delta", EPSILON)], ids=str)
def test_another_release_never_lowers_the_cost(
    plan: Any, accountant: str, question: tuple[str, float]
) -> None:
    both = answer(plan, accountant, *question)
    for alone in plan.parts:
        single = answer(alone, accountant, *question)
        if both is not None and single is not None:
            assert at_most(single, both)


def _ladders() -> Iterator[tuple[hs.Mechanism, str]]:
    """Every example with every parameter of its own that can grow while the others stay."""
    for plan in EXAMPLES:
        for name in (*plan.rises_with, *plan.falls_with):
            # Where epochs are given, the rate moves the steps the other way.
            tied = name in ("rate", "batch_size", "examples")
            if getattr(plan, name) is None or (tied and getattr(plan, "epochs", None) is not None):
                continue
            yield plan, name


LADDERS: Final = tuple(_ladders())


def test_every_parameter_that_the_cost_goes_with_is_on_a_ladder() -> None:
    climbed = {(type(plan).__name__, name) for plan, name in LADDERS}
    kinds = (*MECHANISMS.values(), *NOTIONS.values())
    assert climbed == {
        (kind.__name__, name) for kind in kinds for name in (*kind.rises_with, *kind.falls_with)
    }


def test_every_field_of_a_notion_is_on_a_ladder_or_no_number() -> None:
    fields = {
        field.name
        for kind in NOTIONS.values()
        for field in dataclasses.fields(kind)
        if field.name not in (*kind.rises_with, *kind.falls_with)
    }
    assert fields == NO_NUMBER


# A parameter is the business of the losses: they are read exactly, and some as a Renyi curve.
@pytest.mark.parametrize(("plan", "name"), LADDERS, ids=str)
def test_the_cost_is_monotone_in_every_parameter(plan: Any, name: str) -> None:
    check_ladder(plan, name, "auto")


@pytest.mark.parametrize(("plan", "name"), LADDERS, ids=str)
def test_the_cost_by_renyi_divergences_is_monotone_in_every_parameter(plan: Any, name: str) -> None:
    check_ladder(plan, name, "rdp")


def check_ladder(plan: Any, name: str, accountant: str) -> None:
    now = getattr(plan, name)
    rungs = []
    for factor in (0.5, 1.0, 1.3):
        grown = max(round(factor * now), 1) if isinstance(now, int) else factor * now
        with suppress(hs.errors.IncompatibleError):  # a cycle shorter than what of noise remains
            rungs.append(dataclasses.replace(plan, **{name: grown}))
    assert len(rungs) > 1
    if name in plan.falls_with:
        rungs.reverse()
    found = [answer(rung, accountant) for rung in rungs]
    assert all(at_most(less, more) for less, more in pairwise(found))


@each_engine
@each_composition
def test_a_larger_delta_costs_less_and_a_larger_epsilon_leaves_less(
    plan: hs.Mechanism, accountant: str
) -> None:
    for quantity, values in (("epsilon", (1e-12, 1e-8, 1e-5, 1e-3)), ("delta", (0.0, 0.3, 1, 2))):
        found = [answer(plan, accountant, quantity, value) for value in values]
        if found[0] is not None:
            assert all(at_most(less, more) for more, less in pairwise(found))


@pytest.mark.parametrize("plan", EXAMPLES + COMPOSITIONS, ids=str, scope="module")
@pytest.mark.parametrize("question", [("epsilon", DELTA), ("delta", EPSILON)], ids=str)
def test_no_proven_interval_contradicts_another(
    plan: hs.Mechanism, question: tuple[str, float]
) -> None:
    found = [one for name in PROVEN if (one := proven(plan, name, *question)) is not None]
    assert len(found) >= (3 if plan in GAUSSIANS else 2)
    for one in found:
        assert one.lower <= one.estimate <= one.upper
        assert all(one.lower <= other.upper for other in found)


@each_proven
@each_composition
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-12])
def test_delta_at_the_epsilon_of_a_delta_is_that_delta(
    plan: hs.Mechanism, accountant: str, delta: float
) -> None:
    epsilon = proven(plan, accountant, "epsilon", delta)
    if epsilon is None:
        return
    above = proven(plan, accountant, "delta", epsilon.upper)
    below = proven(plan, accountant, "delta", epsilon.lower)
    assert above is not None
    assert below is not None
    assert above.lower <= delta
    assert epsilon.lower == 0.0 or below.upper >= delta
    exact = ACCOUNTANTS[accountant].kind == "exact"
    if exact and epsilon.estimate > 0.0 and below.upper - above.lower < 1e-6 * delta:
        middle = proven(plan, accountant, "delta", epsilon.estimate)
        assert middle is not None
        assert middle.estimate == pytest.approx(delta, rel=1e-6)


@each_composition
@pytest.mark.parametrize("question", [("epsilon", DELTA), ("delta", EPSILON)], ids=str)
@pytest.mark.parametrize("count", [1, 20])
def test_auto_is_the_accountant_that_it_names(
    plan: hs.Mechanism, question: tuple[str, float], count: int
) -> None:
    automatic = answer(plan**count, "auto", *question)
    assert automatic is not None
    assert automatic.accountant in ACCOUNTANTS
    assert automatic.accountant != "auto"
    assert automatic == answer(plan**count, automatic.accountant, *question)


@each_mechanism
def test_the_adjacency_of_the_plan_is_that_of_its_answers(plan: hs.Mechanism) -> None:
    for name in ("auto", "rdp"):
        found = answer(plan, name)
        assert found is None or found.adjacency == plan.adjacency


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_every_accountant_answers_under_the_adjacency_of_the_plan(accountant: str) -> None:
    plan = STEP**300
    found = answer(plan, accountant)
    assert found is None or found.adjacency == plan.adjacency


def test_zero_out_costs_what_add_remove_costs() -> None:
    noise = hs.Gaussian(2.0)
    one = hs.epsilon(hs.PoissonSubsampled(noise, 0.05, "zero-out") ** 50, DELTA)
    other = hs.epsilon(hs.PoissonSubsampled(noise, 0.05) ** 50, DELTA)
    assert ends(one) == ends(other)


def test_replacing_costs_what_half_the_noise_does() -> None:
    replacing = hs.DPSGD(noise_multiplier=6, rate=1, steps=9, adjacency="replace-one")
    assert ends(hs.epsilon(replacing, DELTA)) == ends(hs.epsilon(hs.Gaussian(3) ** 9, DELTA))
