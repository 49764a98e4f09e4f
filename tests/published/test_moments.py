"""What papers report by the moments accountant, and by Mironov's conversion on a grid of orders.

Abadi et al., "Deep learning with differential privacy", CCS 2016, section 5.1: q = 0.01, sigma = 4
and delta = 1e-5 cost epsilon = 1.26 after 100 epochs. It comes out: 1.2586; the truth is 0.9469.

Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats", 2023,
tables VI and VII (sigma = 6, delta = 1e-5; q = 0.01 and 100 steps a round, or q = 0.1 and one step
more than rounds): by the orders that TensorFlow Privacy had and ``epsilon = tau + ln(1/delta) /
(alpha - 1)``. Every entry below comes out to the digits printed; but 0.138 in table VI does not,
where 3 rounds cost 0.1467. With 32 integer moments the short plans do not come out either: their
best orders are beyond 33. What is sampled there is a fixed number of clients and examples, for
which this analysis does not hold.
"""

from typing import Final

import pytest

import hockeystick as hs
from hockeystick.conversions import theorems

ORDERS: Final = (*(1.25, 1.5, 1.75, 2, 2.25, 2.5, 3, 3.5, 4, 4.5), *range(5, 64), *(128, 256, 512))
DELTA: Final = 1e-5
# Sampling rate, steps, what is printed, and the same to more digits.
TABLES: Final = (
    (0.01, 10_000, "0.823", 0.822734),
    (0.01, 6_000, "0.636", 0.635563),
    (0.01, 1_000, "0.276", 0.275978),
    (0.01, 300, "0.147", 0.146748),
    (0.01, 1_100, "0.285", 0.285006),
    (0.01, 6_700, "0.672", 0.671929),
    (0.01, 3_400, "0.478", 0.477644),
    (0.01, 500, "0.184", 0.184144),
    (0.01, 100, "0.084", 0.084058),
    (0.1, 101, "0.854", 0.853553),
    (0.1, 61, "0.668", 0.667664),
    (0.1, 11, "0.303", 0.302515),
)


def upper(plan: hs.Mechanism, accountant: str) -> float:
    """The upper end of epsilon."""
    answer = hs.epsilon(plan, DELTA, accountant=accountant)
    assert isinstance(answer, hs.Certified)
    return answer.upper


def test_100_epochs_of_abadi_et_al_cost_what_they_print() -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(4.0), 0.01) ** 10_000
    found = upper(plan, "moments")
    assert f"{found:.2f}" == "1.26"
    assert found == pytest.approx(1.2585747412528, rel=1e-12)
    assert found > upper(plan, "rdp") > upper(plan, "contour")


@pytest.mark.parametrize(("rate", "steps", "printed", "epsilon"), TABLES)
def test_the_tables_of_federated_learning_come_out_on_their_grid_of_orders(
    rate: float, steps: int, printed: str, epsilon: float
) -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(6.0), rate) ** steps
    curve = hs.convert(plan, hs.RenyiDP, orders=ORDERS)
    found = min(theorems.mironov(a, tau, delta=DELTA) for a, tau in curve.divergences)
    assert f"{found:.3f}" == printed
    assert found == pytest.approx(epsilon, abs=5e-7)
    # The grid has all of the 32 moments, and more.
    assert upper(plan, "moments") >= found * (1 - 1e-12)
