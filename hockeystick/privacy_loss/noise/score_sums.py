"""A sum of scores of all steps: what random allocation of several participations does at least.

A record is in k of t steps, chosen at random. Give each step's output x the score ``g(x)``, an
integer, and add the scores up. Whichever steps the record is in, the sum of the scores has the same
distribution: with ``a_1`` and ``a_0`` those of one score with and without the record,

    P_S = a_1^(*k) * a_0^(*(t - k)),    Q_S = a_0^(*t)    (convolutions).

The sum is a function of the outputs, so that the pair (P_S, Q_S) costs no more than the allocation
does (data processing), for any g; in a composition too, with one sum for each epoch. Nearly nothing
is lost by the g of Poisson sampling, ``g(x) = round(ln(1 - q + q w(x)) / h)`` with ``q = k/t`` and
w the likelihood ratio of one step: the ratio of the allocation is, up to a factor, the coefficient
of ``y^k`` in the product of all ``1 + y w(x_i)``, which ``y = q / (1 - q)`` nearly makes.

All is sums of positive products: masses are right within a factor ``exp(error)``, and what is left
out has at most the mass ``lost``. With P rounded down and Q rounded up in each outcome,
hockey-stick divergences only fall, those of products too.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.core.base import Array
from hockeystick.privacy_loss.core.uncertain_endpoints import (
    exact_edges,
    gaussian_edges,
    log_masses,
)

# Standard normals beyond this have less than exp(-840).
_FARTHEST: Final = 41.0
# Scores beyond these standard deviations of a step's noise are not told apart.
_CAP: Final = 9.0
# Units of the score in a standard deviation of the sum, and the most units that sums extend over.
_FINE: Final = 250.0
_MOST_UNITS: Final = 30_000.0
# A score alone is to have so many units in a standard deviation, or sums would say little.
_COARSEST: Final = 1.0
# The standard deviations that sums extend over beyond the participations' own scores.
_EXTENT: Final = 30.0
# What is rarer than this at either end is left out.
_LEAST: Final = 1e-60


class Scores(NamedTuple):
    """Masses of a sum of scores, from ``first`` on: a relative error, and what they lack."""

    mass: Array
    first: int
    error: float
    lost: float


@lru_cache(maxsize=16)
def score_sums(noise: float, steps: int, participations: int) -> tuple[Scores, Scores] | None:
    """Return the sums of all scores with the record, and without; None where they say little.

    A record is in fewer than all steps.
    """
    rate = participations / steps
    unit = _unit(noise, steps, rate)
    if unit is None:
        return None
    with_record, without = _one(noise, rate, unit, 1.0), _one(noise, rate, unit, -1.0)
    others = _repeated(without, steps - participations)
    own = _repeated(with_record, participations)
    return _added(own, others), _added(_repeated(without, participations), others)


def _unit(noise: float, steps: int, rate: float) -> float | None:
    """Return the unit h of the scores; None where a sum in such units would say little."""
    middle = 0.5 / noise / noise
    x = np.linspace(-8.0, 8.0, 4001)
    weight = np.exp(-0.5 * x * x) / np.exp(-0.5 * x * x).sum()
    score = np.log1p(rate * np.expm1(np.minimum(x / noise - middle, 700.0)))
    mean = float(weight @ score)
    alone = math.sqrt(float(weight @ (score - mean) ** 2))
    extent = rate * steps * _highest(noise, rate) + _EXTENT * math.sqrt(steps) * alone
    unit = max(math.sqrt(steps) * alone / _FINE, extent / _MOST_UNITS)
    unit = min(unit, alone / _COARSEST)
    return unit if extent / unit <= 2.0 * _MOST_UNITS else None


def _highest(noise: float, rate: float) -> float:
    """Return the largest score, over that of the outputs that speak most against the record."""
    farthest = 0.5 / noise / noise + _CAP / noise
    return farthest + math.log(math.exp(-farthest) + rate / (1.0 - rate))


def _one(noise: float, rate: float, unit: float, side: float) -> Scores:
    """Return the score of one step, with the record (1) or without (-1).

    Its edges, where ``ln(1 - q + q w)`` is half way between two units above ``ln(1 - q)``, are at
    the losses ``ln((1 - q)/q (e^((j + 1/2) h) - 1))``; any edges make scores.
    """
    reach = (_FARTHEST + 0.5 / noise) / noise
    number = math.ceil(_highest(noise, rate) / unit)
    half = (np.arange(number) + 0.5) * unit
    edges = math.log((1.0 - rate) / rate) + half + np.log(-np.expm1(-half))
    edges = np.concatenate(([-reach], edges[np.abs(edges) < reach], [reach]))
    log_mass, errors = log_masses(gaussian_edges(exact_edges(edges), 1.0 / noise, side))
    kept = (log_mass > math.log(_LEAST)) & (errors < 1e-6)
    left = np.exp(np.minimum(log_mass + np.minimum(errors, 700.0), 0.0))[~kept]
    mass = np.where(kept, np.exp(np.where(kept, log_mass, 0.0)), 0.0)
    error = float(errors[kept].max()) + 1024.0 * ULP
    # Beyond _FARTHEST deviations there is less than exp(-800).
    return _trimmed(Scores(mass, 0, error, float(left.sum()) * (1.0 + 1e-9) + 1e-300))


def _added(x: Scores, y: Scores) -> Scores:
    mass = np.convolve(x.mass, y.mass)
    error = x.error + y.error + (min(x.mass.size, y.mass.size) + 8.0) * ULP
    lost = (x.lost + y.lost) * (1.0 + 1e-9)
    return _trimmed(Scores(mass, x.first + y.first, error, lost))


def _trimmed(scores: Scores) -> Scores:
    kept = np.flatnonzero(scores.mass > _LEAST)
    first, last = int(kept[0]), int(kept[-1]) + 1
    mass = np.ascontiguousarray(scores.mass[first:last])
    left = float(scores.mass[:first].sum() + scores.mass[last:].sum())
    return Scores(mass, scores.first + first, scores.error, scores.lost + 2.0 * left)


def _repeated(one: Scores, times: int) -> Scores:
    found = one
    for digit in bin(times)[3:]:
        found = _added(found, found)
        if digit == "1":
            found = _added(found, one)
    return found


def losses_of_sums(sums: tuple[Scores, Scores], removing: bool) -> tuple[Array, Array, float]:
    """Return losses rounded down with their ``ln P``, and the error of these.

    ``p e^-loss`` is at least what the other distribution has there.
    """
    own, other = sums if removing else sums[::-1]
    places = own.first + np.arange(own.mass.size)
    at = places - other.first
    inside = (at >= 0) & (at < other.mass.size)
    beneath = np.where(inside, other.mass[np.clip(at, 0, other.mass.size - 1)], 0.0)
    kept = own.mass > _LEAST
    log_own = np.log(own.mass[kept])
    loss = log_own - np.log(beneath[kept] + other.lost)
    slack = ULP * (16.0 + 8.0 * float(np.abs(log_own).max()) + 8.0 * float(np.abs(loss).max()))
    return loss - own.error - other.error - 2.0 * slack, log_own, own.error + slack
