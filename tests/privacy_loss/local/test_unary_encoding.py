"""The losses of unary encoding and of RAPPOR."""

import math

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import RAPPORLoss, UnaryEncodingLoss


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("epsilon", [1e-5, 0.4, 2.0, 30.0])
def test_the_largest_loss_is_that_of_the_two_bits(epsilon: float, optimized: bool) -> None:
    loss = UnaryEncodingLoss(epsilon, optimized)
    with mp.workdps(40):
        e = mp.mpf(repr(epsilon))
        p = mp.mpf(1) / 2 if optimized else mp.exp(e / 2) / (1 + mp.exp(e / 2))
        q = 1 / (mp.exp(e) + 1) if optimized else 1 - p
        assert float(mp.log(p * (1 - q) / ((1 - p) * q))) == pytest.approx(epsilon, rel=1e-14)
        atoms = loss.atoms()
        assert atoms.loss.tolist() == [-epsilon, 0.0, epsilon]
        for log_p, truth in zip(
            atoms.log_p, ((1 - p) * q, p * q + (1 - p) * (1 - q), p * (1 - q)), strict=True
        ):
            assert float(log_p) == pytest.approx(float(mp.log(truth)), rel=1e-14)
    assert loss.supremum == epsilon


@pytest.mark.parametrize("hashes", [1, 2, 6])
@pytest.mark.parametrize("flip", [0.25, 0.5, 0.999])
def test_rappor_is_epsilon_private_as_published(flip: float, hashes: int) -> None:
    loss = RAPPORLoss(flip, 2 * hashes)
    truth = 2 * hashes * math.log((1 - flip / 2) / (flip / 2))
    assert loss.supremum == pytest.approx(truth, rel=1e-12)
    assert loss.infimum == -loss.supremum


@pytest.mark.parametrize("flip", [0.5, 0.6, 1e-3, 1e-30, 1e-45, 1e-70, 1e-154, 1e-300])
def test_few_flips_cost_what_two_differing_bits_do(flip: float) -> None:
    plan = hs.mechanisms.RAPPOR(flip, 1)
    found = hs.epsilon(plan, delta=1e-5)
    with mp.workdps(700):
        kept = 1 - mp.mpf(repr(flip)) / 2
        bit = mp.log(kept / (1 - kept))
        # Beyond 0, which is the loss where one bit is changed, only both kept bits count.
        truth = 2 * bit + mp.log1p(-mp.mpf("1e-5") / kept**2)
        assert found.lower <= truth <= found.upper
    exact = hs.epsilon(plan, delta=1e-5, digits=30)
    with mp.workdps(700):
        assert abs(exact.estimate - truth) <= truth * mp.mpf(10) ** -29
    assert found.relative_width < 1e-14
