"""Laws of trade-off functions, over drawn families and parameters."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, given, settings

import hockeystick as hs
from hockeystick.tradeoffs import ProfileTradeOff
from hockeystick.tradeoffs.functions.closed_forms import LaplaceTradeOff
from hockeystick.tradeoffs.functions.piecewise import IDENTITY, ApproxTradeOff, discrete_tradeoff
from hockeystick.tradeoffs.functions.sampled_gaussian import SampledGaussianTradeOff
from hockeystick.tradeoffs.operations.group import GroupTradeOff
from hockeystick.tradeoffs.operations.order import at_least
from hockeystick.tradeoffs.profiles.one_order import FunctionProfile

laws = settings(max_examples=25, suppress_health_check=list(HealthCheck))
RATES = np.array([0.0, 1e-12, 1e-5, 0.01, 0.1, 0.25, 0.4, 0.6, 0.8, 0.95, 1 - 1e-6, 1.0])
EPSILONS = np.array([0.0, 0.01, 0.3, 1.0, 2.5, 6.0])
ROUND = 1e-13

distances = st.floats(0.01, 5.0)
rates = st.floats(1e-4, 1.0)


def vectors(size: int) -> st.SearchStrategy[Any]:
    """Return distributions on so many outcomes, none of them rare."""
    weights = st.lists(st.floats(0.05, 1.0), min_size=size, max_size=size)
    return weights.map(lambda w: np.array(w) / np.sum(w))


families = st.one_of(
    st.just(IDENTITY),
    distances.map(hs.tradeoffs.GaussianTradeOff),
    distances.map(lambda mu: LaplaceTradeOff(1.0 / mu)),
    st.builds(SampledGaussianTradeOff, distances, rates),
    st.builds(ApproxTradeOff, distances, st.floats(0.0, 0.5)),
    st.builds(discrete_tradeoff, vectors(5), vectors(5)),
    st.builds(lambda mu, p: GroupTradeOff(SampledGaussianTradeOff(mu, p), 2), distances, rates),
)
smooth = st.one_of(
    distances.map(hs.tradeoffs.GaussianTradeOff),
    distances.map(lambda mu: LaplaceTradeOff(1.0 / mu)),
    st.builds(SampledGaussianTradeOff, distances, rates),
)


def overlap(first: Any, second: Any) -> bool:
    """Return whether two pairs of ends have a value in common, everywhere."""
    return bool((first[0] <= second[1]).all() and (second[0] <= first[1]).all())


def ends(profile: Any, epsilon: Any = EPSILONS) -> tuple[Any, Any]:
    values = profile.at(epsilon)
    return values.lower, values.upper


@laws
@given(families)
def test_it_is_convex_falling_and_below_the_diagonal(f: hs.tradeoffs.TradeOff) -> None:
    lower, upper = f.bounds(RATES)
    assert (0.0 <= lower).all()
    assert (lower <= upper).all()
    assert (lower <= 1.0 - RATES).all()
    assert (lower[1:] <= upper[:-1]).all()
    share = (RATES[1:-1] - RATES[:-2]) / (RATES[2:] - RATES[:-2])
    chord = (1.0 - share) * upper[:-2] + share * upper[2:]
    assert (lower[1:-1] <= chord * (1.0 + ROUND) + 1e-300).all()
    assert overlap(
        (lower, upper), (1.0 - f._power(RATES).upper - ROUND, 1.0 - f._power(RATES).lower + ROUND)
    )


@laws
@given(smooth)
def test_the_function_leads_to_its_profile(f: hs.tradeoffs.TradeOff) -> None:
    assert overlap(ends(FunctionProfile(f)), ends(f.forward))
    assert overlap(ends(FunctionProfile(f.inverse())), ends(f.backward))
    # delta is a difference of powers, and its ends are as near as theirs are.
    values = FunctionProfile(f).at(EPSILONS)
    assert (values.upper - values.lower <= 1e-7 * values.upper + 1e-9).all()


@laws
@given(distances, st.floats(0.01, 0.99))
def test_sampling_never_lowers_the_function(mu: float, rate: float) -> None:
    f, g = SampledGaussianTradeOff(mu, rate), hs.tradeoffs.GaussianTradeOff(mu)
    assert at_least(f, g) is True
    # And so without the knowledge that it is at least G_mu.
    assert at_least(f, ProfileTradeOff((g.forward, g.backward))) is True
    assert at_least(ProfileTradeOff((g.forward, g.backward)), f) is False


@laws
@given(vectors(4), vectors(4), st.lists(vectors(3), min_size=4, max_size=4))
def test_processing_data_never_lowers_the_function(p: Any, q: Any, rows: Any) -> None:
    before = discrete_tradeoff(p, q)
    matrix = np.array(rows)
    after = discrete_tradeoff(_rounded(p @ matrix), _rounded(q @ matrix))
    verdict = at_least(after, before)
    assert verdict is not False
    if np.abs(p - q).max() > 1e-3:
        assert verdict is True


def _rounded(vector: Any) -> Any:
    """Return a distribution whose sum is 1 to the last place or so."""
    return vector / vector.sum()
