import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import pytest
from mpmath import mp, mpf
from numpy.random import default_rng

import hockeystick as hs
from hockeystick.calibration.filters.measures import epsilon_of
from hockeystick.calibration.solve.calibrate import Status
from hockeystick.calibration.solve.fields import Parameter, numeric_paths, spelled
from hockeystick.calibration.solve.search import Evaluation, Search
from hockeystick.calibration.solve.targets import (
    BayesErrorConstraint,
    EpsilonConstraint,
    Measured,
    RenyiConstraint,
    Target,
)
from tests.calibration.budgets.test_split import LEAST

TUTORIAL = hs.DPSGD(noise_multiplier=1.1, rate=256 / 60_000, steps=14_062)
SIZED = hs.DPSGD(noise_multiplier=1.2, examples=60_000, batch_size=256, steps=14_062)
FEW: Any = {"noise_multiplier": 2, "examples": 6000, "batch_size": 60, "steps": 500}
SHUFFLED = hs.DPSGD(**FEW, sampling="shuffle", adjacency="zero-out")
MIXTURE = hs.mechanisms.GaussianMixture(1.5, (0.0, 1.0), (0.9, 0.1))
BUDGET = hs.ApproxDP(2, 1e-5)


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), LEAST)
def test_one_gaussian_has_the_analytic_noise(epsilon: float, delta: float, sigma: str) -> None:
    with mp.workdps(40):
        found = hs.calibrate(
            hs.Gaussian(1), "noise_multiplier", hs.ApproxDP(epsilon, delta), tolerance=1e-10
        )
        assert found.status is Status.TIGHT
        assert 0 <= mpf(found.value) / mpf(sigma) - 1 < 1e-10


@pytest.mark.parametrize(
    "target",
    [
        hs.calibration.Advantage(0.3829249225480262072754),
        hs.calibration.TruePositiveRate(0.09236224807369393585, fpr=0.01),
        hs.calibration.TruePositiveRate(0.018298468406565598, fpr=0.001),
        hs.calibration.BayesError(0.09866369390053116301, prior=0.1),
        hs.calibration.BayesError(0.09866369390053116301, prior=0.9),
        hs.calibration.Reconstruction(0.3891436916453609690, baseline=0.1),
        hs.GDP(1),
        hs.ZCDP(0.5),
        hs.RenyiDP({2: 1.0, 8: 5.0}),
    ],
    ids=str,
)
def test_unit_noise_has_its_published_risks(target: Target) -> None:
    found = hs.calibrate(hs.Gaussian(3), "noise_multiplier", target)
    assert found.value == pytest.approx(1.0, rel=2e-9)
    assert found.status is Status.TIGHT


def test_epochs_end_where_another_step_would_begin() -> None:
    plan = hs.DPSGD(noise_multiplier=1.2, examples=60_000, batch_size=256, epochs=60)
    found = hs.calibrate(plan, "epochs", BUDGET)
    steps = hs.calibrate(SIZED, "steps", BUDGET)
    assert found.status is Status.TIGHT
    assert isinstance(found.plan, hs.DPSGD)
    assert found.plan.total_steps == steps.value
    assert found.achieved == hs.epsilon(found.plan, 1e-5)


def test_what_was_spent_counts() -> None:
    spent = hs.Gaussian(4.0)
    found = hs.calibrate(TUTORIAL, "noise_multiplier", BUDGET, spent=spent)
    assert hs.epsilon(found.plan @ spent, 1e-5).upper <= 2
    less = Parameter.of(TUTORIAL, ("noise_multiplier",)).make(found.bracket[0])
    assert hs.epsilon(less @ spent, 1e-5).lower > 2
    assert found.value > hs.calibrate(TUTORIAL, "noise_multiplier", BUDGET).value


@dataclass(frozen=True, slots=True)
class Valley(hs.mechanisms.Plan):
    """A Gaussian whose noise is least at x = 1."""

    x: float
    idle: float = 1.0

    @property
    def adjacency(self) -> None:
        return None

    @property
    def mechanism(self) -> hs.Mechanism:
        return hs.Gaussian(1 + math.log(self.x) ** 2 if 0 < self.x < math.inf else 1e9)

    def _words(self) -> tuple[str, tuple[str, ...]]:
        return "valley", ()


def test_a_parameter_that_is_ambiguous_is_refused_by_name() -> None:
    plan = hs.Gaussian(3) @ hs.Laplace(9) @ hs.Gaussian(4)
    with pytest.raises(hs.errors.ParameterError, match=r"parts\[0\]\..*, parts\[2\]\."):
        hs.calibrate(plan, "noise_multiplier", BUDGET)
    found = hs.calibrate(plan, "parts[2].noise_multiplier", BUDGET)
    assert found.plan == hs.Gaussian(3) @ hs.Laplace(9) @ hs.Gaussian(found.value)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"accountant": "gdp"}, "accountant"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"target": 2.0}, "target"),
        ({"target": hs.FDP(hs.tradeoffs.G(1))}, "target"),
        ({"target": hs.GDP(1), "accountant": "rdp"}, "accountant"),
        ({"spent": 3}, "spent"),
        ({"plan": 3}, "plan"),
        ({"parameter": 3}, "parameter"),
        ({"parameter": "parts[9].scale"}, "parameter"),
        ({"parameter": "batch_size"}, "parameter"),
    ],
)
def test_wrong_input_is_refused_by_name(change: dict[str, object], name: str) -> None:
    given = {"plan": TUTORIAL, "parameter": "rate", "target": BUDGET} | change
    with pytest.raises(hs.errors.ParameterError, match=rf"^{name} must be"):
        hs.calibrate(**given)  # type: ignore[arg-type]  # what is refused


@pytest.mark.parametrize("value", [-0.1, math.nan, True])
def test_risks_are_probabilities(value: float) -> None:
    for make in (
        lambda: hs.calibration.Advantage(value),
        lambda: hs.calibration.TruePositiveRate(value, 0.1),
        lambda: hs.calibration.TruePositiveRate(0.1, value),
        lambda: hs.calibration.BayesError(value, 0.1),
        lambda: hs.calibration.BayesError(0.1, value),
        lambda: hs.calibration.Reconstruction(value, 0.1),
        lambda: hs.calibration.Reconstruction(0.1, value),
    ):
        with pytest.raises(hs.errors.ParameterError):
            make()


def test_a_risk_below_that_of_a_blind_guess_is_no_target() -> None:
    with pytest.raises(hs.errors.ParameterError, match=r"^rate must be at least fpr, which is 0"):
        hs.calibration.TruePositiveRate(0.5, fpr=0.7)
    with pytest.raises(hs.errors.ParameterError, match=r"^probability must be at least baseline"):
        hs.calibration.Reconstruction(0.1, baseline=0.2)


HARDLY_ANY = hs.ApproxDP(1e-9, 1e-5)
THREE_EPOCHS = hs.DPSGD(noise_multiplier=1.1, examples=60_000, batch_size=256, epochs=3)


@pytest.mark.parametrize(
    ("plan", "parameter", "least", "amount"),
    [
        (THREE_EPOCHS, "epochs", 256 / 60_000, "epochs = 0.00426667, one step,"),
        (
            hs.DPSGD(noise_multiplier=1.1, rate=0.01, epochs=3) @ hs.PureDP(0),
            "epochs",
            0.01,
            "parts[0].epochs = 0.01, one step,",
        ),
        (hs.Gaussian(1) ** 3, "count", 1, "count = 1"),
    ],
    ids=["epochs", "epochs-of-a-part", "count"],
)
def test_nothing_at_all_is_no_answer_and_it_says_what_the_first_step_costs(
    plan: hs.Mechanism, parameter: str, least: float, amount: str
) -> None:
    with pytest.raises(hs.errors.InfeasibleError) as refusal:
        hs.calibrate(plan, parameter, HARDLY_ANY)
    error, path = refusal.value, amount.partition(" ")[0]
    told = f"no {path} above 0 reaches epsilon 1e-09 at delta 1e-05: at {amount} the plan"
    assert str(error).startswith(f"{told} has epsilon between {error.lower:.6g} and ")
    assert error.best == least
    own = next(one for one in numeric_paths(plan) if spelled(one) == path)
    one = Parameter.of(plan, own).make(least)
    first = hs.epsilon(one, HARDLY_ANY.delta)
    assert (error.lower, error.upper) == (first.lower, first.upper)
    assert error.lower > HARDLY_ANY.epsilon


def test_one_step_that_just_fits_is_an_answer() -> None:
    once = hs.DPSGD(noise_multiplier=1.1, examples=60_000, batch_size=256, steps=1)
    target = hs.ApproxDP(hs.epsilon(once, 1e-5).upper, 1e-5)
    assert hs.calibrate(once, "steps", target).value == 1
    found = hs.calibrate(THREE_EPOCHS, "epochs", target)
    assert isinstance(found.plan, hs.DPSGD)
    assert found.plan.total_steps == 1


def test_an_error_is_met_by_what_is_proven_of_it() -> None:
    target = hs.calibration.BayesError(0.05, prior=0.1)
    found = hs.calibrate(hs.Gaussian(1), "noise_multiplier", target, accountant="rdp")
    assert target.value <= found.achieved.lower < found.achieved.upper


@pytest.mark.parametrize(
    ("plan", "parameter", "target"),
    [
        (hs.Gaussian(1), "noise_multiplier", hs.calibration.BayesError(0.5, prior=0.5)),
        (hs.Gaussian(1), "noise_multiplier", hs.calibration.Advantage(0.0)),
        (hs.Gaussian(1), "noise_multiplier", hs.ApproxDP(1.0, 0.0)),
        (hs.Gaussian(1), "noise_multiplier", hs.ZCDP(0.0)),
        (hs.Gaussian(1), "noise_multiplier", hs.GDP(0.0)),
        (hs.Laplace(1), "scale", hs.PureDP(0.0)),
        (hs.DiscreteGaussian(1), "sigma", hs.PureDP(3.0)),
        (hs.mechanisms.TreeAggregation(1.0, leaves=9), "noise_multiplier", hs.PureDP(3.0)),
    ],
    ids=str,
)
def test_infinite_noise_is_no_answer(plan: hs.Mechanism, parameter: str, target: Any) -> None:
    with pytest.raises(hs.errors.InfeasibleError, match=f"no finite .*{parameter} reaches"):
        hs.calibrate(plan, parameter, target)


@pytest.mark.parametrize(
    ("plan", "parameter", "target", "told"),
    [
        (Valley(0.5), "x", hs.ApproxDP(4.5, 1e-5), "x is not monotone"),
        (Valley(3.0), "idle", BUDGET, "idle has no influence on epsilon"),
        (SHUFFLED, "steps", hs.ApproxDP(8, 1e-5), "steps"),
        (MIXTURE, "probabilities[1]", BUDGET, r"probabilities\[1\] cannot change on its own"),
        (
            hs.DiscreteGaussian(2.0),
            "sigma",
            hs.GDP(1.0),
            r"no GDP is proven to follow from .*sigma 2\)",
        ),
        (
            hs.ApproxDP(1.0, 1e-4),
            "epsilon",
            hs.ZCDP(1.0),
            r"to follow from a \(1, 0.0001\)-DP release",
        ),
        (
            hs.PoissonSubsampled(hs.ZCDP(1.0), rate=0.01),
            "rho",
            hs.ApproxDP(1.0, 1.1e-6),
            r"cannot account for plan \(Poisson-subsampled \[1-zCDP release\]",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_solved_for_is_refused_by_name_or_with_the_number_that_it_came_with(
    plan: hs.Mechanism, parameter: str, target: Any, told: str
) -> None:
    """No "infeasible", no infinite noise, and no number that the search happened to try."""
    with pytest.raises((hs.errors.IncompatibleError, hs.errors.UnsupportedError), match=told):
        hs.calibrate(plan, parameter, target)


@pytest.mark.parametrize(
    ("plan", "parameter", "target"),
    [
        (hs.DiscreteGaussian(2.0), "sigma", hs.ZCDP(0.5)),
        (hs.Laplace(2.0) @ hs.Gaussian(3.0), "noise_multiplier", hs.GDP(0.9)),
        (hs.PoissonSubsampled(hs.Gaussian(1.0), 0.9, "replace-one"), "noise_multiplier", hs.GDP(1)),
    ],
    ids=str,
)
def test_a_target_of_another_notion_is_solved_for_whatever_the_losses_tell_it_of(
    plan: hs.Mechanism, parameter: str, target: Any
) -> None:
    found = hs.calibrate(plan, parameter, target)
    limit = target.mu if isinstance(target, hs.GDP) else target.rho
    assert limit * (1 - 1e-6) <= found.achieved.upper <= limit


SIZES: Final[dict[str, Any]] = {"examples": 60_000, "batch_size": 256}


@pytest.mark.parametrize(
    ("plan", "fields", "reason"),
    [
        (hs.DPSGD, {"epoch": 3}, "a field of DPSGD must be one of 'noise_multiplier', "),
        (hs.DPSGD, SIZES, "epochs or steps must be given"),
        (hs.DPSGD, {**SIZES, "epochs": -1}, "epochs must be a finite number >= 0; got -1"),
        (hs.PoissonSubsampled, {"inner": hs.Gaussian(1)}, "rate must be given beside PoissonSub"),
        (hs.Gaussian(1), {"epochs": 3}, "epochs must be left out beside a plan, which has"),
        (
            lambda noise_multiplier: hs.Gaussian(2 * noise_multiplier),
            {},
            "plan must be a mechanism, ",
        ),
        ("Gaussian()", {}, "plan must be a mechanism, or a class of them such as hs.DPSGD"),
        (hs.Laplace, {"scale": 1}, "parameter must be a number that the plan gives: scale; got"),
    ],
)
def test_the_fields_of_a_class_are_checked_by_their_names(
    plan: Any, fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(hs.errors.ParameterError) as refusal:
        hs.calibrate(plan, "noise_multiplier", BUDGET, **fields)
    assert str(refusal.value).startswith(reason)


def test_only_whole_values_count_where_that_is_asked() -> None:
    plan = hs.DPSGD(noise_multiplier=1.1, **SIZES, epochs=0.5)
    found = hs.calibrate(plan, "epochs", BUDGET, whole=True)
    assert (type(found.value), found.status, found.extreme) == (int, "tight", "most")
    assert found.bracket == (found.value, found.value + 1)
    assert found.misses is not None
    assert hs.epsilon(found.misses, BUDGET.delta).lower > BUDGET.epsilon
    assert hs.calibrate(plan, "epochs", BUDGET).value == pytest.approx(found.value, abs=1)
    noise = hs.calibrate(plan, "noise_multiplier", BUDGET, whole=True)
    assert (noise.value, noise.extreme) == (1, "least")


# What a search and its constraints take for met, at random numbers beside fifty digits.


@pytest.mark.parametrize(
    ("inside", "outside", "found"), [(9.0, 1.0, (7.0, 6.0)), (1.0, 9.0, (2.0, 3.0))]
)
def test_of_several_brackets_the_search_takes_the_safest(
    inside: float, outside: float, found: tuple[float, float]
) -> None:
    noise = Parameter.of(hs.Gaussian(1.0), ("noise_multiplier",))
    search = Search(noise, EpsilonConstraint(1.0, "auto", 1e-5), lambda plan: plan, 1e-9)
    missed = (1.0, 3.0, 6.0) if inside > outside else (3.0, 6.0, 9.0)
    for x in (1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 9.0):
        search.evaluated[x] = Evaluation(x, None, 0.0, x not in missed, False)
    ends = search._closest(search.evaluated[inside], search.evaluated[outside])
    assert (ends[0].x, ends[1].x) == found


def test_the_bayes_error_of_a_gaussian_is_between_its_ends() -> None:
    draw = default_rng(1)
    with mp.workdps(50):
        for _ in range(6):
            sigma, prior = float(draw.uniform(0.3, 3.0)), float(draw.uniform(0.01, 0.99))
            found = BayesErrorConstraint(0.1, "auto", prior).evaluate(hs.Gaussian(sigma))
            s, p = mp.mpf(repr(sigma)), min(mp.mpf(prior), 1 - mp.mpf(prior))
            e = mp.log((1 - p) / p)
            delta = mp.ncdf(1 / (2 * s) - e * s) - mp.exp(e) * mp.ncdf(-1 / (2 * s) - e * s)
            assert found.lower <= p * (1 - delta) <= found.upper
            assert found.upper - found.lower < 1e-9


def test_the_bayes_error_of_next_to_no_release_is_rounded_outward() -> None:
    for prior in default_rng(2).uniform(0.51, 0.99, 40).tolist():
        found = BayesErrorConstraint(0.1, "auto", prior).evaluate(hs.RandomizedResponse(1e-9))
        exact = 1 - Fraction(prior)
        assert found.lower <= exact <= found.upper or found.lower == found.upper == float(exact)


def test_the_ratio_of_a_divergence_is_rounded_outward() -> None:
    draw = default_rng(3)
    for _ in range(30):
        rho, allowed = float(draw.uniform(0.1, 2.0)), float(draw.uniform(0.1, 9.0))
        found = RenyiConstraint(1.0, "auto", ((3.0, allowed),)).evaluate(hs.ZCDP(rho))
        exact = 3 * Fraction(rho) / Fraction(allowed)
        assert Fraction(found.lower) <= exact <= Fraction(found.upper)
        assert found.upper == pytest.approx(float(exact), rel=1e-9)


def test_a_target_is_met_by_the_upper_end_and_missed_by_the_lower_one() -> None:
    constraint = EpsilonConstraint(1.0, "auto", 1e-5)
    wide = Measured(0.9, 1.1, "epsilon")
    assert not constraint.meets(wide)
    assert not constraint.violates(wide)
    assert constraint.meets(Measured(0.9, 1.0, "epsilon"))
    assert constraint.violates(Measured(1.0 + 1e-15, 2.0, "epsilon"))


def test_the_epsilon_of_laplace_noise_is_rounded_up() -> None:
    for scale in default_rng(5).uniform(0.1, 9.0, 100).tolist():
        exact = 1 / Fraction(repr(scale))
        assert exact <= epsilon_of(hs.Laplace(scale)) <= exact * (1 + Fraction(1, 10**9))
