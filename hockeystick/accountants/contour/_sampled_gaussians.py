"""The contour of a composition of Poisson-subsampled Gaussians, in one compiled call."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hockeystick.accountants.contour._far_outputs import LEAST_LOG_WEIGHT, SLACK, STRONG
from hockeystick.accountants.contour._integral import Integral
from hockeystick.accountants.contour._line import AnalyticTerms, VerticalContour
from hockeystick.numerics import Ball
from hockeystick.privacy_loss import SampledGaussianLoss

# Nodes of the line times nodes of a loss: with more, a better line is worth a search.
_MOST_WORK: Final = 150_000.0
# The least and the largest c that a search begins with.
_LEAST_ORDER: Final = 1e-3
_LARGEST_ORDER: Final = 1e6


def integral_at_once(
    terms: AnalyticTerms, goal: float, accuracy: float, *, at_epsilon: bool = False
) -> tuple[Integral, float, float] | None:
    """Return an integral for an epsilon or for ln delta, with the two; None where none is short.

    Its errors aim for ``exp(-accuracy)`` of delta. None is made of other losses than
    Poisson-subsampled Gaussians.
    """
    losses = [loss for loss, _ in terms if isinstance(loss, SampledGaussianLoss)]
    if len(losses) < len(terms) or len({loss.removing for loss in losses}) > 1:
        return None
    from hockeystick.kernels import contour_sums, sampled_gaussian_contour

    counts = np.array([float(count) for _, count in terms])
    line, real, imag, error = sampled_gaussian_contour.contour(
        np.array([loss.p for loss in losses]),
        np.array([loss.mu for loss in losses]),
        counts,
        losses[0].removing,
        goal,
        at_epsilon,
        first_order(terms, goal, at_epsilon=at_epsilon),
        accuracy,
        _MOST_WORK * len(losses),
        (STRONG, LEAST_LOG_WEIGHT, SLACK),
    )
    if not line.size:
        return None
    c, epsilon, log_delta, above, below, upper_above, upper_below, step, truncation = line.tolist()
    contour = VerticalContour(c, above, below, step, real.size - 1, truncation)
    weight = contour_sums.weights(c, step, real.size)
    ends = Ball(upper_above, 0.0), Ball(upper_below, 0.0)
    nothing = np.zeros(real.size)
    return Integral(contour, weight, nothing, real, imag, error, *ends, None), epsilon, log_delta


def first_order(terms: AnalyticTerms, goal: float, *, at_epsilon: bool = False) -> float:
    """Return about the best order for an epsilon or for ln delta, to begin a search with.

    It is the saddle of a Gaussian of the same chi-square divergence, or the order beyond which hits
    decide a sampled Gaussian's K, where ``p exp(c mu^2 / 2)`` is 1, if that is less.
    """
    square = sum(loss.clt_mu_squared * count for loss, count in terms)
    if not 0.0 < square < math.inf:
        return 1.0
    root = math.sqrt(square)
    order = goal / square - 0.5 if at_epsilon else math.sqrt(2.0 * max(-goal, 1.0)) / root
    order = min(max(order, min(1.0, 1.0 / root), _LEAST_ORDER), _LARGEST_ORDER)
    hits = [
        -2.0 * math.log(loss.p) / (loss.mu * loss.mu)
        for loss, _ in terms
        if isinstance(loss, SampledGaussianLoss) and loss.removing
    ]
    return min([order, *hits])
