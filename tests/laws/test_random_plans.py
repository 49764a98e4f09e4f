"""Laws of accounting, asked of a random plan with each mechanism, special numbers among its own.

`LAWS=20 python -m pytest -m "" tests/laws/test_random_plans.py` asks each law of twenty plans with
each mechanism, and the profile "fresh" of Hypothesis draws others each time.
"""

import dataclasses
import json
import math
import os
import random
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick.accountants import ACCOUNTANTS
from hockeystick.notions import GDP, NOTIONS, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from tests.examples import EXAMPLES
from tests.judge.judging import TooLong, limited

EACH: Final = int(os.environ.get("LAWS", "1"))
SEED: Final = time.time_ns() if os.environ.get("HYPOTHESIS_PROFILE") == "fresh" else 49
# Seconds of the processor for one plan: one that takes more tells nothing about the law.
PATIENCE: Final = 0.5 if EACH == 1 else 20.0
PROVEN: Final = tuple(name for name, one in ACCOUNTANTS.items() if one.kind != "approximation")
REFUSED: Final = (hs.errors.UnsupportedError, hs.errors.IncompatibleError)

FLOATS: Final = (
    *(0.0, 5e-324, 1e-300, 1e-9, 0.25, 0.5),
    *(math.nextafter(1.0, 0.0), 1.0, 1e6, 1e155, 1e300, math.inf),
)
COUNTS: Final = (0, 1, 2, 3, 1000, 10**6, 10**12)
DELTAS: Final = (0.0, 1e-300, 1e-30, 1e-12, 1e-8, 1e-5, 1e-3, 0.1, 1.0)
EPSILONS: Final = (0.0, 1e-9, 0.1, 0.7, 1.0, 3.0, 20.0, 700.0)

Draw = random.Random
# A law of a plan, of the one with a mechanism in it, and of what else it draws.
Law = Callable[[Any, Any, Draw], None]


def number(now: Any, draw: Draw) -> Any:
    if isinstance(now, int):
        return draw.choice((*COUNTS, now + 1, max(now - 1, 0), 2 * now))
    return draw.choice((*FLOATS, *(now * draw.uniform(0.3, 3.0) for _ in FLOATS)))


def numbers(plan: Any) -> list[str]:
    values = {f.name: getattr(plan, f.name) for f in dataclasses.fields(plan) if f.init}
    return [n for n, v in values.items() if isinstance(v, int | float) and not isinstance(v, bool)]


def stated(plan: Any) -> list[str]:
    return [name for name in numbers(plan) if name in (*plan.rises_with, *plan.falls_with)]


def changed(plan: Any, draw: Draw) -> Any:
    fields = numbers(plan)
    for name in draw.sample(fields, min(len(fields), draw.choice((0, 1, 1, 2)))):
        with suppress(hs.HockeystickError):
            plan = dataclasses.replace(plan, **{name: number(getattr(plan, name), draw)})
    return plan


def leaf(draw: Draw) -> Any:
    return changed(draw.choice(EXAMPLES), draw)


def wrapped(plan: Any, draw: Draw) -> Any:
    """The mechanism itself, beside others, or inside another."""
    for _ in range(draw.choice((0, 0, 1, 1, 2))):
        with suppress(hs.HockeystickError):
            plan = draw.choice(WRAPPERS)(plan, draw)
    return plan


def readjacent(plan: Any, adjacency: hs.Adjacency) -> Any:
    says = any(field.name == "adjacency" for field in dataclasses.fields(plan))
    return dataclasses.replace(plan, adjacency=adjacency) if says else plan


WRAPPERS: Final[tuple[Callable[[Any, Draw], Any], ...]] = (
    lambda plan, draw: plan ** draw.choice(COUNTS),
    lambda plan, draw: plan @ leaf(draw),
    lambda plan, draw: plan @ leaf(draw) ** draw.choice(COUNTS[:5]),
    lambda plan, draw: hs.PoissonSubsampled(plan, draw.choice((0.0, 1e-6, 0.1, 0.9, 1.0))),
    lambda plan, draw: hs.mechanisms.RevealedSample(plan, draw.choice((0.0, 0.3, 1.0))),
    lambda plan, draw: hs.Parallel((plan, leaf(draw))),
    lambda plan, draw: readjacent(plan, draw.choice(list(hs.Adjacency))),
)


def question(draw: Draw, *names: str) -> tuple[Callable[..., Any], float]:
    """Epsilon at a delta, or delta at an epsilon, by one of the accountants."""
    ask, values = draw.choice(((hs.epsilon, DELTAS), (hs.delta, EPSILONS)))
    return partial(ask, accountant=draw.choice(names or PROVEN)), draw.choice(values)


def overlap(*answers: hs.Certified) -> None:
    for one in answers:
        assert one.lower <= one.estimate <= one.upper
    lower, upper = (one.lower for one in answers), (one.upper for one in answers)
    assert max(lower, default=0.0) <= min(upper, default=0.0), answers


def accountants_agree(plan: Any, one: Any, draw: Draw) -> None:
    ask, value = question(draw)
    found = []
    for name in PROVEN:
        with suppress(*REFUSED):
            found.append(ask(plan, value, accountant=name))  # in place of the one drawn
    overlap(*found)


def verifier_agrees(plan: Any, one: Any, draw: Draw) -> None:
    """The second program refutes no answer, and none with more digits."""
    pytest.importorskip("flint")
    ask, value = question(draw)
    options: dict[str, Any] = draw.choice(({}, {"tolerance": 1e-9}, {"digits": 12}))
    found = ask(plan, value, **options)
    at = {"delta" if found.quantity == "epsilon" else "epsilon": value}
    assert hs.verify(found, plan, **at).status != "refuted"


def narrower_tolerances_agree(plan: Any, one: Any, draw: Draw) -> None:
    ask, value = question(draw, "auto")
    overlap(ask(plan, value), ask(plan, value, tolerance=1e-10), ask(plan, value, digits=15))


def powers_are_compositions(plan: Any, one: Any, draw: Draw) -> None:
    ask, value = question(draw)
    several = (plan**3, plan @ plan @ plan, hs.Composed((plan,) * 3), plan**1 @ plan**2)
    overlap(*(ask(one, value) for one in several))
    if (plan**0).adjacency is not None or plan.adjacency is None:
        assert ask(plan**0, value).upper == 0.0


def orders_do_not_matter(plan: Any, one: Any, draw: Draw) -> None:
    ask, value = question(draw)
    other = leaf(draw)
    overlap(ask(plan @ other, value), ask(other @ plan, value))


def more_releases_cost_more(plan: Any, one: Any, draw: Draw) -> None:
    ask, value = question(draw)
    alone = ask(plan, value).lower
    assert alone <= ask(plan**2, value).upper
    assert alone <= ask(plan @ leaf(draw), value).upper


def costs_are_monotone(plan: Any, one: Any, draw: Draw) -> None:
    ask, value = question(draw)
    for name in stated(one):
        # Where epochs are given, the rate moves the steps the other way.
        if name in ("rate", "batch_size", "examples") and getattr(one, "epochs", None):
            continue
        now = getattr(one, name)
        more = now + 1 if isinstance(now, int) else draw.choice((1.001, 1.25, 4.0)) * now
        with suppress(hs.errors.ParameterError, *REFUSED):
            pair = one, dataclasses.replace(one, **{name: more})
            less, most = pair if name in one.rises_with else pair[::-1]
            assert ask(less, value).lower <= ask(most, value).upper, name


def smaller_deltas_cost_more(plan: Any, one: Any, draw: Draw) -> None:
    """Epsilon falls with delta and delta with epsilon; each finds the other again."""
    for ask, values in ((hs.epsilon, DELTAS), (hs.delta, EPSILONS)):
        low, high = sorted(draw.sample(values, 2))
        assert ask(plan, high).lower <= ask(plan, low).upper
    value = draw.choice(DELTAS)
    epsilon = hs.epsilon(plan, value)
    assert epsilon.upper == math.inf or hs.delta(plan, epsilon.upper).lower <= value
    assert epsilon.lower == 0.0 or hs.delta(plan, epsilon.lower).upper >= value


def tradeoffs_say_the_same(plan: Any, one: Any, draw: Draw) -> None:
    f = hs.tradeoff(plan)
    epsilon = draw.choice(EPSILONS)
    overlap(f.delta(epsilon), hs.delta(plan, epsilon))
    with suppress(*REFUSED):
        assert f.delta(epsilon).lower <= f.group(2).delta(epsilon).upper
    alpha = draw.random()
    beta, above = f.bounds(alpha)
    assert 0.0 <= beta <= above <= math.nextafter(1.0 - alpha, 2.0)
    assert f.bounds(min(above, 1.0))[0] <= alpha + 1e-12


BUDGETS: Final[tuple[tuple[Notion, dict[str, Any]], ...]] = (
    (PureDP(1e9), {}),
    (GDP(1e9), {}),
    (ZCDP(1e9), {}),
    (TCDP(1e9, 9.0), {}),
    (RenyiDP({1.5: 1e9, 8.0: 1e9}), {}),
    (ApproxDP(1e9, 1e-4), {"slack": 0.0}),
    (ApproxDP(1e9, 1e-4), {"slack": 1e-5}),
    (ApproxDP(1e9, 1e-4), {"slack": 1e-5, "rule": "whitehouse"}),
)


def guarantees(plan: Any, draw: Draw) -> Iterator[Notion]:
    """What a plan is converted to, and what is charged for it."""
    delta = draw.choice(DELTAS[1:-1])
    given: dict[str, dict[str, Any]] = {
        "ApproxDP": {"delta": delta},
        "TCDP": {"omega": draw.choice((1.5, 9.0))},
        "RenyiDP": {"orders": (1.5, 8.0)},
    }
    for name in draw.sample(sorted(NOTIONS), 3):
        with suppress(*REFUSED):
            yield hs.convert(plan, name, **given.get(name, {}))
    for budget, options in draw.sample(BUDGETS, 2):
        spending = hs.calibration.Filter(budget, **options)
        # Without slack nothing but the largest loss pays, which there may not be.
        with suppress(*REFUSED, hs.errors.BudgetExhausted):
            spending.step(plan)
            yield spending.spent
    with suppress(*REFUSED):
        yield ApproxDP(hs.calibration.Odometer(delta).step(plan), delta)


def guarantees_are_no_cheaper(plan: Any, one: Any, draw: Draw) -> None:
    for found in guarantees(plan, draw):
        epsilon = draw.choice(EPSILONS)
        if isinstance(found, ApproxDP):
            epsilon = found.epsilon
        if epsilon < math.inf:
            most = hs.delta(found, epsilon).upper
            assert hs.delta(plan, epsilon).lower <= most * (1.0 + 1e-12), found


def concentration_is_converted(plan: Any, one: Any, draw: Draw) -> None:
    """Where the accountant "zcdp" has an answer, tCDP up to order 1.05 has one: none is refused."""
    known = hs.delta(plan, 1.0, accountant="zcdp").upper
    if known < 1.0 and hs.delta(plan, math.inf).upper == 0.0:
        try:
            assert hs.convert(plan, TCDP, omega=1.05).rho < math.inf
        except REFUSED as error:
            pytest.fail(str(error))


def solutions_meet_their_target(plan: Any, one: Any, draw: Draw) -> None:
    epsilon, delta = draw.choice((0.1, 1.0, 8.0)), draw.choice((1e-9, 1e-5))
    for name in stated(one):
        with suppress(*REFUSED, hs.errors.InfeasibleError, hs.errors.ParameterError):
            found = hs.calibrate(one, name, ApproxDP(epsilon, delta))
            assert hs.delta(found.plan, epsilon).lower <= delta
            if found.misses is not None:
                assert hs.delta(found.misses, epsilon).upper >= delta


def descriptions_come_back(plan: Any, one: Any, draw: Draw) -> None:
    ask, value = question(draw)
    text = json.dumps(hs.calibration.describe(plan), allow_nan=False)
    again = hs.calibration.read_description(json.loads(text))
    assert again == plan
    assert repr(ask(again, value)) == repr(ask(plan, value))


LAWS: Final[tuple[Law, ...]] = (
    accountants_agree,
    verifier_agrees,
    narrower_tolerances_agree,
    powers_are_compositions,
    orders_do_not_matter,
    more_releases_cost_more,
    costs_are_monotone,
    smaller_deltas_cost_more,
    tradeoffs_say_the_same,
    guarantees_are_no_cheaper,
    concentration_is_converted,
    solutions_meet_their_target,
    descriptions_come_back,
)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: type(example).__name__)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_a_law_holds_with_each_mechanism(law: Law, example: hs.Mechanism) -> None:
    for index in range(EACH):
        draw = random.Random(f"{SEED}/{law.__name__}/{example}/{index}")
        one = changed(example, draw)
        plan = wrapped(one, draw)
        with warnings.catch_warnings(), suppress(TooLong, *REFUSED), limited(PATIENCE):
            warnings.simplefilter("ignore")
            law(plan, one, draw)


# What once ended in an error of Python's, or in one about a parameter that nobody had given.
GAUSSIAN: Final = hs.Gaussian(4.0)
(LOCAL,) = (one for one in EXAMPLES if isinstance(one, hs.federated.LocalTraining))
TINY: Final[tuple[Callable[[], Any], ...]] = (
    lambda: hs.tradeoff(hs.Gaussian(5e-324)).bounds(0.1)[0],
    lambda: hs.tradeoff(hs.Gaussian(1e-100) ** 2 @ hs.Laplace(1.0)).bounds(0.1)[0],
    lambda: hs.delta(hs.mechanisms.RevealedSample(GAUSSIAN, 1e-300), 0.5).lower,
    lambda: (
        hs.delta(
            hs.mechanisms.PoissonSubsampledGroup(GAUSSIAN, 5e-324, 3, "replace-one"), 0.5
        ).lower
    ),
    lambda: hs.delta(dataclasses.replace(LOCAL, noise_multiplier=1e155), 0.5).upper,
    lambda: 1.0 / hs.epsilon(hs.mechanisms.Staircase(1.7e308) ** 9, 1e-5).lower,
    lambda: hs.delta(hs.DiscreteGaussian(1e160), 1e-3).upper,
)


@pytest.mark.parametrize("ask", TINY)
def test_numbers_at_the_ends_of_their_domains_are_answered(ask: Callable[[], Any]) -> None:
    assert ask() < 1e-300


@pytest.mark.parametrize("noise", [5e-324, 1e-300])
def test_noise_that_floats_cannot_divide_by_is_none(noise: float) -> None:
    (plan,) = [one for one in EXAMPLES if isinstance(one, hs.mechanisms.BallsInBins)]
    loud = dataclasses.replace(plan, noise_multiplier=noise)
    assert hs.delta(loud, 0.5, accountant="prv" if noise == 5e-324 else "auto").upper == 1.0


@pytest.mark.parametrize(
    "plan",
    [
        hs.Gaussian(1e-9) ** 2 @ hs.PoissonSubsampled(hs.Gaussian(1.1), 0.02),
        hs.DiscreteGaussian(1.0, sensitivity=10**15),
    ],
    ids=str,
)
def test_the_verifier_says_what_is_beyond_it(plan: hs.Mechanism) -> None:
    pytest.importorskip("flint")
    verdict = hs.verify(
        hs.Certified(2.0, 3.0, 4.0, quantity="epsilon", accountant="prv"), plan, delta=1e-5
    )
    assert verdict.status == "not covered"


def test_every_digit_of_an_answer_is_verified() -> None:
    pytest.importorskip("flint")
    plan = hs.PoissonSubsampled(hs.Gaussian(1.1), 0.01) ** 1000
    found = hs.epsilon(plan, 1e-5, digits=20)
    assert hs.verify(found, plan, delta=1e-5).status == "verified"
    wrong = dataclasses.replace(found, lower=found.upper, estimate=found.upper)
    assert hs.verify(wrong, plan, delta=1e-5).status == "refuted"
