"""Rare sampling and small epsilons: the search goes far down, up or nowhere, and stays short."""

import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants.contour._sampled_gaussians import integral_at_once
from hockeystick.accountants.contour.accountant import Contour
from hockeystick.kernels import sampled_gaussian_contour as kernel
from hockeystick.privacy_loss import SampledGaussianLoss


def plan(noise: float, rate: float, steps: int) -> hs.Mechanism:
    return hs.PoissonSubsampled(hs.Gaussian(noise), rate) ** steps


def test_directions_that_are_no_opposites_are_both_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    ask = Contour.epsilon_of

    def counted(self: Contour, terms: object, delta: float) -> object:
        asked.append(terms)
        return ask(self, terms, delta)  # type: ignore[arg-type]

    monkeypatch.setattr(Contour, "epsilon_of", counted)
    hs.epsilon(plan(0.7, 1e-6, 100), 1e-5, accountant="contour")
    assert len(asked) == 1
    monkeypatch.setattr(SampledGaussianLoss, "opposite", None)
    hs.epsilon(plan(0.7, 1e-6, 100), 1e-5, accountant="contour")
    assert len(asked) == 3


@pytest.mark.parametrize("short", [1e-2, 1e-4, 1e-6])
def test_no_quadrature_is_made_next_to_the_largest_loss(short: float) -> None:
    loss = SampledGaussianLoss(0.01, 1.0, removing=False)
    epsilon = 100 * loss.supremum * (1.0 - short)
    assert integral_at_once(((loss, 100),), epsilon, 6.0, at_epsilon=True) is None
    one = np.array([0.01]), np.array([1.0])
    nodes, *_ = kernel.quadratures(*one, False, 1e4, 10.0, np.array([-30.0]), 1e3)
    assert nodes.shape == (4, 0)


def test_a_line_of_other_losses_is_not_made_at_once() -> None:
    both = [SampledGaussianLoss(0.01, 1.0, removing=one) for one in (True, False)]
    assert integral_at_once(tuple((loss, 10) for loss in both), math.log(1e-5), 32.0) is None
