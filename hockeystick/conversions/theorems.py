"""The conversions of the literature, each by the name of its authors, rounded to the safe side.

``hockeystick.convert`` takes the tightest route; these are its steps and the looser textbook forms,
for comparison. Where ``epsilon`` and ``delta`` are both keywords, one is given and the other one is
returned. Parameters mean the exact values of the floats.
"""

from __future__ import annotations

from hockeystick.conversions._pure_and_gaussian_theorems import (
    balle_wang,
    bun_steinke_rho,
    gaussian_mu,
    kairouz_oh_viswanath,
    laplace_mu,
    liu_mu,
    response_divergence,
    steinke_rho,
)
from hockeystick.conversions._renyi_theorems import (
    asoodeh,
    bun_dwork_rothblum_steinke,
    bun_steinke,
    canonne_kamath_steinke,
    canonne_kamath_steinke_concentrated,
    mironov,
)

__all__ = [
    "asoodeh",
    "balle_wang",
    "bun_dwork_rothblum_steinke",
    "bun_steinke",
    "bun_steinke_rho",
    "canonne_kamath_steinke",
    "canonne_kamath_steinke_concentrated",
    "gaussian_mu",
    "kairouz_oh_viswanath",
    "laplace_mu",
    "liu_mu",
    "mironov",
    "response_divergence",
    "steinke_rho",
]
