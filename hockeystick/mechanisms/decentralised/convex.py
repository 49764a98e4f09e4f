"""The assumption of amplification by iteration: contractive gradient steps."""

from __future__ import annotations

import math
from typing import Final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.adjacency import Adjacency
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.numerics import decimal
from hockeystick.numerics.numerals import plain

_POSITIVE: Final = {
    "step_size": Domain(
        symbol="eta", low=0, high=math.inf, low_open=True, high_open=True, typical=(1e-4, 1)
    ),
    "smoothness": Domain(
        symbol="beta", low=0, high=math.inf, low_open=True, high_open=True, typical=(0.1, 10)
    ),
}


def checked_steps(step_size: object, smoothness: object, convex: object) -> tuple[float, float]:
    """Return the step size and the smoothness if gradient steps with them contract, or raise."""
    eta, beta = (
        _validate.real(name, value, _POSITIVE[name])
        for name, value in (("step_size", step_size), ("smoothness", smoothness))
    )
    if not isinstance(convex, bool):
        raise ParameterError("convex", convex, "True or False")
    if not convex:
        raise IncompatibleError(
            "amplification by iteration is proven for convex losses alone: a gradient step of a "
            "loss that is not convex may drive two models apart; account for each step as "
            "released, by Gaussian(noise_multiplier / 2) under replace-one"
        )
    if decimal(eta) * decimal(beta) > 2:
        raise IncompatibleError(
            f"step_size times smoothness must be at most 2, where gradient steps contract; "
            f"{plain(eta)} times {plain(beta)} is more"
        )
    return eta, beta


def checked_adjacency(adjacency: Adjacency | str) -> Adjacency:
    """Return the adjacency, or raise where no record takes the place of the other."""
    found = _validate.choice("adjacency", adjacency, Adjacency)
    if found is Adjacency.ADD_REMOVE:
        raise IncompatibleError(
            "amplification by iteration compares as many steps with and without a record: use "
            "adjacency 'replace-one' or 'zero-out', not 'add-remove'"
        )
    return found


def change(adjacency: Adjacency) -> int:
    """Return the sensitivity of a step, in units of the bound of the gradients."""
    return 2 if adjacency is Adjacency.REPLACE_ONE else 1


def convexity_assumptions(noise: float, step_size: float, smoothness: float) -> tuple[str, ...]:
    """Return what must hold of every step, as sentences for a reviewer."""
    return (
        "Each step is w <- Pi(w - eta (gradient + Z)) with one record's gradient, Pi a projection "
        f"onto a convex set or none, and eta = {plain(step_size)} in all of them.",
        "Each record's loss is convex in w, its gradients have norm at most L throughout, which "
        f"clipping does not bring about, and it is {plain(smoothness)}-smooth.",
        f"Z is fresh Gaussian noise of the standard deviation {plain(noise)} L in each coordinate.",
        "The order of the steps does not depend on the data.",
    )
