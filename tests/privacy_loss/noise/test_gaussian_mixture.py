"""The loss of a Gaussian mixture: against quadrature over the output, by mpmath."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hockeystick.privacy_loss import GaussianMixtureLoss
from hockeystick.privacy_loss.noise import gaussian_mixture

MIXTURES: list[tuple[Any, Any]] = [
    ((Fraction(1, 2), Fraction(2)), (Fraction(9, 10), Fraction(1, 10))),
    (
        (Fraction(1, 20), Fraction(1), Fraction(3)),
        (Fraction(1, 2), Fraction(49, 100), Fraction(1, 100)),
    ),
    ((Fraction(1), Fraction(1001, 1000)), (Fraction(1, 3), Fraction(2, 3))),
]
RARE: list[tuple[Any, Any]] = [
    # The second component counts from an output of 8.8 on, the third from one of 16 on.
    (
        (Fraction(1), Fraction(4), Fraction(9)),
        (1 - Fraction(1, 10**30) - Fraction(1, 10**60), Fraction(1, 10**30), Fraction(1, 10**60)),
    )
]
each_mixture_or_rare = pytest.mark.parametrize(("distances", "weights"), MIXTURES + RARE)
each_direction = pytest.mark.parametrize("removing", [True, False])


@each_direction
@each_mixture_or_rare
@pytest.mark.parametrize("edges", [(-12.0, 40.0, 2000), (-700.0, 700.0, 400), (3.0, 3.5, 5000)])
def test_leaving_components_out_moves_no_mass_by_more_than_its_error(
    distances: Any, weights: Any, removing: bool, edges: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = GaussianMixtureLoss(distances, weights, removing)
    found = loss.cells(np.linspace(*edges))
    monkeypatch.setattr(gaussian_mixture, "_NEGLIGIBLE", 1e9)
    whole = loss.cells(np.linspace(*edges))
    for some, all_of_them in ((found.log_p, whole.log_p), (found.log_q, whole.log_q)):
        same = some == all_of_them
        apart = np.abs(np.where(same, 0.0, some - all_of_them))
        assert (apart <= found.error + whole.error).all()
        assert (same | np.isfinite(apart)).all()
