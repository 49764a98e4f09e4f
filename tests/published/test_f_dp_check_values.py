"""Known values of f-DP, of the notions and of what lies between them, by the public interface.

Each value was computed independently in many digits; those of the literature that are misprinted
are recorded in the docstrings of what they are about.
"""

from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.accountants.limits import normals_of
from hockeystick.conversions.theorems import gaussian_mu, response_divergence
from hockeystick.privacy_loss import FixedSizeGaussianLoss
from hockeystick.tradeoffs import ApproxTradeOff, G, LaplaceTradeOff

POISSON = hs.PoissonSubsampled(hs.Gaussian(1.0), 0.01) ** 1000
FIXED = hs.FDP(G(1.0).subsample(0.01)) ** 1000


def _approximate(plan: hs.Mechanism, epsilon: float, accountant: str = "gdp") -> float:
    answer = hs.delta(plan, epsilon, accountant=accountant)
    assert isinstance(answer, hs.Approximate)
    return answer.value


SHORT = hs.PoissonSubsampled(hs.Gaussian(1), 0.01)
# Name, what is asked, the truth; the answer is an interval that holds it, or a number.
VALUES: list[tuple[str, Callable[[], Any], float]] = [
    ("A3 delta(1; 1)", lambda: G(1).delta(1), 0.126936737506643945800829624758),
    ("A3 delta(5; 0.5)", lambda: G(0.5).delta(5), 4.41544347029961926997758165125e-24),
    ("A3 epsilon(1e-5)", lambda: G(1).epsilon(1e-5), 4.37717809568122462765011629324),
    ("A3 epsilon(1e-10)", lambda: G(1).epsilon(1e-10), 6.54792406686495100581928943696),
    ("A3 mu(1, 1e-5)", lambda: gaussian_mu(1.0, 1e-5), 0.26805112321129421790303557237),
    ("A7 D_8 of pure .5", lambda: response_divergence(0.5, 8), 0.432353706756464873643805),
    ("A8 D_3 of G_.5", lambda: G(0.5).renyi_divergence(3), 0.375),
    ("A10 Laplace", lambda: LaplaceTradeOff(1).delta(0.5), 0.2211992169285951317548297),
    ("A10 D_2", lambda: LaplaceTradeOff(1).renyi_divergence(2), 0.6191236299985928233997885),
    ("A10 D_10", lambda: LaplaceTradeOff(2).renyi_divergence(10), 0.428690386467274833491612),
    ("A12 f", lambda: ApproxTradeOff(1, 1e-6).group(3).power_bounds(0), 1.1107337927389695463e-5),
    ("B1 C(.1)", lambda: G(1).subsample(0.2).bounds(0.1), 0.842171261670927806192),
    ("B1 C(.5)", lambda: G(1).subsample(0.2).bounds(0.5), 0.423415015490394758545),
    ("B1 C(.9)", lambda: G(1).subsample(0.2).bounds(0.9), 0.055736093260137968602),
    ("B1 D_8, .25", lambda: G(0.25).subsample(0.01).renyi_divergence(8), 3.0822617628887583e-5),
    ("B2 remove", lambda: hs.delta(SHORT, 1), 2.73200926154613e-9),
    ("C3", lambda: (G(3) @ G(4)).delta(5), float(G(5).delta(5))),
    ("C_p^1000, 2", lambda: hs.delta(FIXED, 2), 3.9311878558741735944e-5),
    ("H5 advantage", lambda: G(1).advantage, 0.3829249225480262072754),
    ("H5 (1, 1e-5)", lambda: ApproxTradeOff(1, 1e-5).advantage, 0.4621225360884371584),
    ("H5 TPR at 1 %", lambda: G(1).power(0.01), 0.09236224807369393585),
    ("H5 TPR at .1 %", lambda: G(1).power(0.001), 0.01829846840565659802),
    ("H5 Bayes error", lambda: G(1).bayes_error(0.1), 0.09866369390053116301),
    ("H5 reconstruction", lambda: G(1).reconstruction(0.1), 0.3891436916453609690),
]
# Values that are printed to fewer digits than a float holds: approximations and their bounds.
PRINTED: list[tuple[str, Callable[[], float], str]] = [
    ("C4 CLT of Poisson, 1", lambda: _approximate(POISSON, 1), "1.759e-3"),
    ("C4 CLT of Poisson, 2", lambda: _approximate(POISSON, 2), "1.489e-7"),
    ("C4 CLT of C_p, 1", lambda: _approximate(FIXED, 1), "1.0925e-2"),
    ("C4 CLT of C_p, 2", lambda: _approximate(FIXED, 2), "3.714e-5"),
    ("C5 mu", lambda: normals_of(((FixedSizeGaussianLoss(0.01, 1.0), 1000),)).mu, "0.52888"),
    ("C5 Edgeworth, 2", lambda: _approximate(POISSON, 2, "edgeworth"), "5.768e-6"),
]


@pytest.mark.parametrize(("ask", "truth"), [v[1:] for v in VALUES], ids=[v[0] for v in VALUES])
def test_the_known_value_is_met(ask: Callable[[], Any], truth: float) -> None:
    found = ask()
    if isinstance(found, hs.Certified):
        found = found.lower, found.upper
    # A single number may be a bound, rounded to its safe side, or a limit.
    lower, upper = found if isinstance(found, tuple) else (found * (1 - 1e-11), found)
    assert lower <= truth * (1 + 1e-15)
    assert truth * (1 - 3e-14) <= upper * (1 + 1e-11 * isinstance(found, float))
    assert upper - lower <= 1e-7 * truth


@pytest.mark.parametrize(("ask", "printed"), [v[1:] for v in PRINTED], ids=[v[0] for v in PRINTED])
def test_the_printed_digits_are_met(ask: Callable[[], float], printed: str) -> None:
    digits = len(printed.partition("e")[0].replace(".", "").lstrip("0"))
    assert float(f"{ask():.{digits - 1}e}") == float(printed)


def test_berry_esseen_is_a_bound_that_says_little() -> None:
    normals = normals_of(((FixedSizeGaussianLoss(0.01, 1.0), 1000),))
    assert f"{normals.under_p.gamma:.4f}" == "0.0889"
    found = hs.delta(FIXED, 1.0, accountant="berry-esseen")
    assert isinstance(found, hs.Certified)
    assert found.lower <= 9.9054377995653515758e-3 <= found.upper
    assert found.upper > 0.05
