"""The pair of losses of the best of a random number of runs.

Let f be the generating function of the number of runs, ``f(x) = E[x^K]``, and let q and q' be the
probabilities, under the two data sets, that a run's output is at most some output, where ties are
distinguished at random: q and q' rise together from 0 to 1. The best output has densities f'(q) dq
and f'(q') dq', so that with ``alpha = 1 + c`` and ``r = dq/dq'``, where K = 0 adds f(0),

    e^(K(c)) <= f(0) + integral of h r^c dq,   h = f'(q)^(1+c) f'(q')^(-c)

(Papernot and Steinke 2022, lemma 7); the integral of r^c dq is ``W = e^(K_run(c))``. What bounds h
is in the module of each distribution.

Lemma. Where h is at most C, and v, a function of q and q' that goes from 0 to 1, has
``dv <= r^c dq`` and ``integral of h dv = 1 - f(0)``, then ``e^(K(c)) <= 1 + C (W - 1)``. For as
C - h >= 0,

    integral of (C - h) r^c dq >= integral of (C - h) dv = C - (1 - f(0)).

By tangents of a convex function ``r^c dq >= (1+c) x^c dq - c x^(1+c) dq'`` for every x > 0. With
x = 1 the right side is dv for ``v = (1+c) q - c q'``, which serves Poisson's number.
"""

from __future__ import annotations

import math
from functools import lru_cache, singledispatch
from typing import Final

from hockeystick.mechanisms.selection.tuning import (
    Binomial,
    Poisson,
    RandomStopping,
    RunCount,
    TruncatedNegativeBinomial,
)
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.composition import Terms, compose_unsplit
from hockeystick.privacy_loss.core.registry import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.core.terms import total
from hockeystick.privacy_loss.core.two_point import RandomizedResponsePairLoss
from hockeystick.privacy_loss.selection.sparse_vector import UnknownLoss
from hockeystick.privacy_loss.selection.tuning_binomial import BinomialTuningLoss
from hockeystick.privacy_loss.selection.tuning_poisson import PoissonTuningLoss
from hockeystick.privacy_loss.selection.tuning_truncated import TruncatedTuningLoss

# An order so small that any loss with divergences has a finite one there.
_SMALL_ORDER: Final = 1e-9


@dominating_pair.register
def _(mechanism: RandomStopping) -> DominatingPair:
    removing, adding = pair = compose_unsplit(mechanism.inner)
    if not removing and not adding:
        return DominatingPair(None, None)
    if any(
        isinstance(loss, RandomizedResponsePairLoss) and 0.0 < loss.failure < 1.0
        for loss, _ in removing
    ):
        raise NoAnalysisError(
            "a guarantee that may fail has no Renyi divergences, by which the best of several runs "
            "is bounded; state the divergences of a run (RenyiDP or ZCDP) or what it is made of "
            "(such as Gaussian or DPSGD), or pay for a fixed number k of runs by run ** k"
        )
    if any(total(terms, _SMALL_ORDER).value == math.inf for terms in pair):
        return DominatingPair(UnknownLoss(), UnknownLoss())
    distribution = mechanism.distribution
    return DominatingPair(
        tuned(distribution, removing, adding), tuned(distribution, adding, removing)
    )


@singledispatch
def tuned(distribution: RunCount, terms: Terms, reverse: Terms) -> PrivacyLoss:
    """Return the loss of the best run; ``reverse`` are the terms of the other direction."""
    raise NoAnalysisError(
        f"the best of a random number of runs is not analysed for: {distribution}"
    )


@tuned.register
@lru_cache(maxsize=256)
def _(distribution: TruncatedNegativeBinomial, terms: Terms, reverse: Terms) -> PrivacyLoss:
    return TruncatedTuningLoss.of(distribution, terms, reverse)


@tuned.register
@lru_cache(maxsize=256)
def _(distribution: Binomial, terms: Terms, reverse: Terms) -> PrivacyLoss:
    return BinomialTuningLoss(terms, reverse, distribution.trials, distribution.probability)


@tuned.register
@lru_cache(maxsize=256)
def _(distribution: Poisson, terms: Terms, reverse: Terms) -> PrivacyLoss:
    return PoissonTuningLoss(terms, reverse, distribution.mean)
