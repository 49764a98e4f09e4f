"""A far tail that no delta sees does not say where the lattice is tilted."""

import math

import pytest

from hockeystick.accountants.orders import optimal_order
from hockeystick.accountants.prv._truncation import NO_TRUNCATION, Truncation
from hockeystick.privacy_loss import CellLoss, GaussianLoss, observed_mixture


def heavy() -> CellLoss:
    """Return a mixture whose rare part is all of its moments."""
    found = observed_mixture([(1.0 - 1e-40, GaussianLoss(2.0)), (1e-40, GaussianLoss(0.01))])
    assert found is not None
    return found


def test_a_rare_part_is_left_out_where_it_would_be_all_there_is() -> None:
    mixture, plain = heavy(), GaussianLoss(2.0)
    truncation = Truncation.at([(mixture, 10)], math.log(1e-6))
    found = truncation.cgf_estimate(mixture, 3.0)
    exact = plain.cgf_estimate(3.0)
    assert found.value == pytest.approx(exact.value, rel=1e-3)
    assert found.first_derivative == pytest.approx(exact.first_derivative, rel=1e-3)
    assert mixture.cgf_estimate(3.0).value > 1e3


def test_what_counts_is_left_as_it_is() -> None:
    loss = GaussianLoss(2.0)
    truncation = Truncation.at([(loss, 10)], math.log(1e-6))
    assert truncation.cgf_estimate(loss, 3.0) == loss.cgf_estimate(3.0)
    assert NO_TRUNCATION.cgf_estimate(loss, 3.0) == loss.cgf_estimate(3.0)
    terms = truncation.terms([(loss, 10)])
    assert optimal_order(terms, -12.0) == optimal_order([(loss, 10)], -12.0)
