"""Attacks as scores on arrays: what one computes from a model's answers, larger where "in".

Rates at every threshold, losses, likelihood ratios from shadow models, noisy neighbours, canaries
(Nasr, Hayes, Steinke, Balle, Tramer, Jagielski, Carlini and Terzis, "Tight auditing of
differentially private machine learning", USENIX Security 2023, algorithm 2) and gradients that
leak (Wei, Liu, Zhou, Chow and Wu, "Securing Distributed SGD against Gradient Leakage Threats",
2023, section 3). Arrays are finite numbers, of records n, trials and shadow models; ``scores_in``
are of trials in which the record took part, ``scores_out`` of those in which it did not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from hockeystick import _validate
from hockeystick._validate import PARAMETERS, Domain, whole_numbers
from hockeystick.audit.scores import SEED, Array, checked_scores, flags, numbers
from hockeystick.errors import ParameterError

__all__ = [
    "ROC",
    "auc",
    "canary_projections",
    "canary_scores",
    "deviation_scan",
    "dirac_direction",
    "first_layer_input",
    "lira_offline",
    "lira_online",
    "logit_gaps",
    "loss_scores",
    "nearest_candidate",
    "neighbour_scores",
    "noisy_neighbours",
    "random_direction",
    "roc",
    "tpr_at",
]

_FEWEST: Final = 2
_MOST_AXES: Final = 8
_DEVIATION: Final = Domain(symbol="sigma", low=0, high=1e150, typical=(1e-3, 1.0), low_open=True)
_NEAR: Final = "(neighbours, ..., records)"
_LEVELS: Final = "(levels, neighbours, records)"
_SIZE: Final = whole_numbers("d", 1, (100, 10**7))
_NORM: Final = Domain(symbol="C", low=0, high=1e150, typical=(0.1, 10), low_open=True)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ROC:
    """The empirical rates of "in where score >= threshold", one point per distinct score.

    Thresholds decrease; the first, inf, is above all scores, infinite ones too. ``fpr`` and ``tpr``
    are the shares of scores_out and scores_in at or above each.
    """

    thresholds: Array
    fpr: Array
    tpr: Array


def roc(scores_in: ArrayLike, scores_out: ArrayLike) -> ROC:
    """Return the receiver operating characteristic of scores, of which a larger one says "in".

    Rates are counts over numbers of trials, rounded once: observations, no bounds, which
    ``audit.lower_curve`` gives. Equal scores share one point.

    Example:
        >>> from hockeystick.audit import attacks
        >>> found = attacks.roc([3.0, 2.0, 2.0], [2.0, 1.0])
        >>> found.thresholds.tolist(), found.fpr.tolist()
        ([inf, 3.0, 2.0, 1.0], [0.0, 0.0, 0.5, 1.0])
    """
    inside = checked_scores("scores_in", scores_in)
    outside = checked_scores("scores_out", scores_out)
    thresholds = np.concatenate(([np.inf], np.unique(np.concatenate((inside, outside)))[::-1]))
    found = [thresholds]
    for scores in (outside, inside):
        above = len(scores) - np.searchsorted(np.sort(scores), thresholds[1:], side="left")
        found.append(np.concatenate(([0.0], above / len(scores))))
    for one in found:
        one.setflags(write=False)
    return ROC(*found)


def auc(scores_in: ArrayLike, scores_out: ArrayLike) -> float:
    """Return the area under the ROC: how often a score in is above one out, half for equals.

        AUC = (#{s > t} + #{s = t}/2) / (n m),    s of scores_in, t of scores_out

    Counted in integers and rounded once. An average case: an attack that is sure of a few records
    has an AUC near 1/2 (Carlini et al. 2022, section IV).

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.auc([3.0, 2.0, 2.0], [2.0, 1.0])
        0.8333333333333334
    """
    inside = checked_scores("scores_in", scores_in)
    ordered = np.sort(checked_scores("scores_out", scores_out))
    below = np.searchsorted(ordered, inside, side="left")
    no_higher = np.searchsorted(ordered, inside, side="right")
    return int(np.sum(below + no_higher)) / (2 * len(inside) * len(ordered))


def tpr_at(scores_in: ArrayLike, scores_out: ArrayLike, *, fpr: float) -> float:
    """Return the largest observed TPR among thresholds whose observed FPR is at most this.

    No threshold is drawn at random: between two points of the curve the lower one counts. With m
    scores out, an fpr, in [0, 1], below 1/m asks for no false positive at all.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.tpr_at([4.0, 3.0, 2.0, 0.0], [3.0, 1.0], fpr=0.1)
        0.25
    """
    allowed = _validate.real("fpr", fpr, Domain("alpha", 0, 1, (1e-3, 0.1)))
    found = roc(scores_in, scores_out)
    return float(found.tpr[found.fpr <= allowed][-1])


def loss_scores(losses: ArrayLike) -> Array:
    """Return ``-loss``: a record with a small loss is said to be in.

    Yeom, Giacomelli, Fredrikson and Jha, "Privacy risk in machine learning: analyzing the
    connection to overfitting", CSF 2018, adversary 2. Losses are finite, of any shape.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.loss_scores([0.5, 2.0])
        array([-0.5, -2. ])
    """
    return -numbers("losses", losses, "records", most=_MOST_AXES)


def logit_gaps(logits: ArrayLike, labels: Any) -> Array:
    """Return the logarithm of the odds that a classifier gives to each record's label.

        phi = ln(p_y / (1 - p_y)) = z_y - ln sum over k != y of exp(z_k)

    Over trainings it is nearly normal, which losses are not: Carlini, Chien, Nasr, Song, Terzis and
    Tramer, "Membership inference attacks from first principles", S&P 2022, section VI.A. Logits are
    scores before the softmax, of shape (..., n, classes) with at least two classes, labels the
    class of each record.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.logit_gaps([[2.0, 0.0], [1.0, 4.0]], [0, 0])
        array([ 2., -3.])
    """
    found = numbers("logits", logits, "(..., records, classes)", fewest=2, most=_MOST_AXES)
    records, classes = found.shape[-2:]
    if classes < 2:
        raise ParameterError("logits", f"an array of shape {found.shape}", "of two classes or more")
    known = np.asarray(labels)
    if (
        known.shape != (records,)
        or known.dtype.kind not in "iu"
        or not ((known >= 0) & (known < classes)).all()
    ):
        raise ParameterError("labels", labels, f"{records} integers from 0 to {classes - 1}")
    rows = np.arange(records)
    others = found.copy()
    others[..., rows, known] = -np.inf
    return np.asarray(found[..., rows, known] - logsumexp(others, axis=-1))


def lira_online(
    observed: ArrayLike, shadow: ArrayLike, included: Any, *, variance: str = "per-record"
) -> Array:
    """Return the log-likelihood ratio of normal laws fitted to shadow models with and without.

        score = ln N(x; mu_in, v_in) - ln N(x; mu_out, v_out)

    The moments of each record's statistic x are those of shadow models with it, and without.

    Where x is normal with these moments, no score has a better ROC (Neyman-Pearson). Scores of
    target models are independent if the models are; shadow models must not be targets. Carlini et
    al. 2022, algorithm 1.

    Args:
        observed: The statistic of the target models on each record, shape (..., n).
        shadow: That of the shadow models, shape (models, n); as of ``logit_gaps``.
        included: Whether each shadow model trained on each record; at least two with, two without.
        variance: "per-record", or "pooled": the mean over records, for few shadow models.

    Example:
        >>> from hockeystick.audit import attacks
        >>> shadow = [[1.0], [3.0], [-1.0], [-3.0]]
        >>> attacks.lira_online([[1.0], [-2.0]], shadow, [[1], [1], [0], [0]]).ravel()
        array([ 4., -8.])
    """
    targets, known, inside = _targets(observed, shadow, included)
    mean_in, variance_in = _moments(known, inside, variance)
    mean_out, variance_out = _moments(known, ~inside, variance)
    nearer = (targets - mean_out) ** 2 / variance_out - (targets - mean_in) ** 2 / variance_in
    return np.asarray(0.5 * (nearer + np.log(variance_out / variance_in)))


def lira_offline(
    observed: ArrayLike, shadow: ArrayLike, included: Any = None, *, variance: str = "per-record"
) -> Array:
    """Return how far a statistic lies above those of shadow models without the record.

        score = (x - mu_out) / sqrt(v_out)

    Carlini et al. 2022, section V.C, whose score is Phi of it. Weaker than ``lira_online``, which
    has the same arguments, where the record changes the variance. Shadow models that trained on a
    record are left out; ``included`` is None where none did.
    """
    targets, known, inside = _targets(observed, shadow, included)
    mean, spread = _moments(known, ~inside, variance)
    return np.asarray((targets - mean) / np.sqrt(spread))


def _targets(observed: Any, shadow: Any, included: Any) -> tuple[Array, Array, NDArray[np.bool_]]:
    known = numbers("shadow", shadow, "(models, records)", fewest=2)
    inside = flags("included", np.zeros(known.shape) if included is None else included, known.shape)
    axes = "(..., records)"
    return numbers("observed", observed, axes, most=_MOST_AXES, last=known.shape[1:]), known, inside


def _moments(known: Array, taken: NDArray[np.bool_], variance: str) -> tuple[Array, Array]:
    _validate.one_of("variance", variance, ("per-record", "pooled"))
    counts = taken.sum(axis=0)
    if (counts < _FEWEST).any():
        record = int(np.argmin(counts))
        told = f"{int(counts[record])} models on one side of record {record}"
        raise ParameterError("included", told, "two models or more with, and without, each record")
    means = np.where(taken, known, 0.0).sum(axis=0) / counts
    spreads = np.where(taken, (known - means) ** 2, 0.0).sum(axis=0) / counts
    if variance == "pooled":
        spreads = np.full_like(spreads, spreads.mean())
    if (spreads <= 0.0).any():
        told = f"equal statistics of record {int(np.argmin(spreads))}"
        raise ParameterError("shadow", told, "statistics that differ between models")
    return means, spreads


def noisy_neighbours(records: ArrayLike, deviation: float, *, copies: int, seed: int) -> Array:
    """Return each record with ``N(0, sigma^2)`` added to every coordinate, several times.

    Records are inputs, or their embeddings, of shape (n, ...), copies how many neighbours each has,
    10 in the thesis. Nothing is protected by this noise. Galli, "Sense and Sensitivity", PhD
    thesis, Scuola Normale Superiore, 2024, section 4.4; Galli, Melis and Cucinotta, "Noisy
    neighbors: efficient membership inference attacks against LLMs", 2024.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.noisy_neighbours([[0.0, 1.0]], 0.1, copies=10, seed=0).shape
        (10, 1, 2)
    """
    known = numbers("records", records, "(records, ...)", most=_MOST_AXES)
    sigma = _validate.real("deviation", deviation, _DEVIATION)
    several = _validate.count("copies", copies, whole_numbers("k", 1, (10, 100)))
    random = np.random.default_rng(_validate.count("seed", seed, SEED))
    return np.asarray(known + sigma * random.standard_normal((several, *known.shape)))


def neighbour_scores(losses: ArrayLike, neighbour_losses: ArrayLike) -> Array:
    """Return by how much the mean loss near a record exceeds the loss at it.

        score = (1/k) sum over i of loss(x + rho_i) - loss(x)

    Galli 2024, equation (4.5), with the sign turned. Losses are of shape (..., n), those at k
    neighbours of shape (k, ..., n).

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.neighbour_scores([1.0, 2.0], [[2.0, 2.0], [4.0, 3.0]])
        array([2. , 0.5])
    """
    at = numbers("losses", losses, "(..., records)", most=_MOST_AXES)
    near = numbers("neighbour_losses", neighbour_losses, _NEAR, most=_MOST_AXES)
    if near.shape[1:] != at.shape:
        allowed = f"losses of several neighbours, of shape (k, {', '.join(map(str, at.shape))})"
        raise ParameterError("neighbour_losses", f"an array of shape {near.shape}", allowed)
    return np.asarray(near.mean(axis=0) - at)


def deviation_scan(losses: ArrayLike, neighbour_losses: ArrayLike, included: Any) -> Array:
    """Return the AUC of noisy neighbours at each noise level.

    Choose the level on other records than those that are scored with it: the best of several on the
    same trials is a choice that no confidence of theirs covers. Losses are of shape (n,), those at
    the neighbours of shape (levels, k, n); included says whether each record was in training.
    """
    at = numbers("losses", losses, "records")
    levels = numbers("neighbour_losses", neighbour_losses, _LEVELS, fewest=3, last=at.shape)
    inside = flags("included", included, at.shape)
    if inside.all() or not inside.any():
        raise ParameterError("included", "records of one kind", "of records in and records out")
    scores = [neighbour_scores(at, near) for near in levels]
    return np.array([auc(one[inside], one[~inside]) for one in scores])


def dirac_direction(size: int, coordinate: int) -> Array:
    """Return the unit vector of one of so many coordinates, from 0: one that others hardly move.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.dirac_direction(3, 1)
        array([0., 1., 0.])
    """
    length = _validate.count("size", size, _SIZE)
    last = Domain(symbol="i", low=0, high=length - 1, typical=(0, 0), whole=True)
    found = np.zeros(length)
    found[_validate.count("coordinate", coordinate, last)] = 1.0
    return found


def random_direction(size: int, *, seed: int) -> Array:
    """Return a vector of length 1 and uniform direction, nearly orthogonal to few gradients."""
    length = _validate.count("size", size, _SIZE)
    random = np.random.default_rng(_validate.count("seed", seed, SEED))
    found = random.standard_normal(length)
    return np.asarray(found / np.linalg.norm(found))


def canary_projections(sums: ArrayLike, direction: ArrayLike, *, norm: float) -> Array:
    """Return the part of each released sum along a canary, in units of the clipping norm.

        x_t = <s_t, c> / (C |c|)

    With a canary of length C in the sum, x_t is 1 more than without; Gaussian noise of multiplier z
    moves it by ``N(0, z^2)``, and other records by their own part along c, which is not noise. Sums
    are released noisy sums of clipped gradients, of shape (..., d), the direction c a vector of any
    length above 0, and norm the clipping norm C.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.canary_projections([[0.5, 3.0], [2.5, 3.0]], [1.0, 0.0], norm=2.0)
        array([0.25, 1.25])
    """
    canary = numbers("direction", direction, "parameters")
    length = float(np.linalg.norm(canary))
    if not length > 0.0:
        raise ParameterError("direction", "a vector of length 0", "a vector that is not 0")
    released = numbers("sums", sums, "(..., parameters)", most=_MOST_AXES, last=canary.shape)
    unit = _validate.real("norm", norm, _NORM)
    return np.asarray(np.asarray(released @ (canary / length)) / unit)


def canary_scores(projections: ArrayLike, *, noise_multiplier: Any, rate: float = 1.0) -> Array:
    """Return the log-likelihood ratio of a canary that each step takes with some probability.

        score = sum over t of ln(1 - q + q exp((x_t - 1/2) / z_t^2))

    Where x_t is ``N(0, z_t^2)`` without the canary, and with probability q ``N(1, z_t^2)`` with it,
    independently, no score has a better ROC (Neyman-Pearson): it is the pair that the account of
    Poisson sampling is exact for, under add-remove. Projections are of shape (..., steps), the
    noise multiplier z > 0 of all steps, or of each, and the rate the q in (0, 1].

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.canary_scores([[0.5, 1.5], [0.0, 0.0]], noise_multiplier=1.0)
        array([ 1., -1.])
    """
    steps = numbers("projections", projections, "(..., steps)", most=_MOST_AXES)
    noise = numbers("noise_multiplier", noise_multiplier, "all steps, or each", fewest=0, most=1)
    if noise.shape not in ((), (1,), steps.shape[-1:]) or not (noise > 0.0).all():
        allowed = f"one number > 0, or {steps.shape[-1]}"
        raise ParameterError("noise_multiplier", noise_multiplier, allowed)
    q = _validate.real("rate", rate, PARAMETERS["rate"])
    if q == 0.0:
        raise ParameterError("rate", rate, "a number > 0 and <= 1")
    gains = (steps - 0.5) / noise**2
    if q < 1.0:
        gains = np.logaddexp(np.log1p(-q), np.log(q) + gains)
    return np.asarray(gains.sum(axis=-1))


def first_layer_input(weight_gradient: ArrayLike, bias_gradient: ArrayLike) -> Array:
    """Return the input of a linear layer, by least squares from the layer's gradients.

    For the loss of one record and a layer ``u = W x + b``, with e the gradient of u,

        dL/dW = e x^T,    dL/db = e,    so that    x = (dL/dW)^T e / |e|^2

    Exact (up to rounding) for one record, and unchanged by clipping, which scales both; for several
    records it is a mixture of them. Phong, Aono, Hayashi, Wang and Moriai, "Privacy-preserving deep
    learning via additively homomorphic encryption", TIFS 2018, section III; Geiping, Bauermeister,
    Droge and Moeller, "Inverting gradients", NeurIPS 2020, proposition 3.1.

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.first_layer_input([[1.0, 2.0], [-2.0, -4.0]], [0.5, -1.0])
        array([2., 4.])
    """
    errors = numbers("bias_gradient", bias_gradient, "outputs")
    weights = numbers("weight_gradient", weight_gradient, "(outputs, inputs)", fewest=2)
    if len(weights) != len(errors):
        allowed = f"numbers for ({len(errors)} outputs, inputs)"
        raise ParameterError("weight_gradient", f"an array of shape {weights.shape}", allowed)
    largest = np.abs(errors).max()
    if not largest > 0.0:
        raise ParameterError("bias_gradient", "0 for every output", "a gradient that is not 0")
    shares = errors / largest
    return np.asarray((shares @ weights) / (shares @ shares) / largest)


def nearest_candidate(observed: ArrayLike, candidates: ArrayLike) -> NDArray[np.intp]:
    """Return which of several possible gradients is nearest to each that was observed.

    Under Gaussian noise of one deviation in all coordinates it is the likeliest candidate, and with
    a uniform prior over N of them no attack is right more often. Observed gradients are of shape
    (..., d), candidates, clipped as the release clips, of shape (N, d); the first of equals counts.

    Guarantees:
        Let f be the trade-off function of the release under add-remove. Any attack that names the
        record, drawn uniformly among N, is right with probability at most ``1 - f(1/N)``: without
        the record it would be right with probability 1/N, and ``1 - f`` is concave (Hayes,
        Mahloujifar and Balle, "Bounding training data reconstruction in DP-SGD", NeurIPS 2023).

    Example:
        >>> from hockeystick.audit import attacks
        >>> attacks.nearest_candidate([[0.9, 0.2], [-1.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]])
        array([0, 1])
    """
    known = numbers("candidates", candidates, "(candidates, parameters)", fewest=2)
    last = known.shape[1:]
    seen = numbers("observed", observed, "(..., parameters)", most=_MOST_AXES, last=last)
    closeness = seen @ known.T - 0.5 * (known**2).sum(axis=1)
    return np.asarray(np.argmax(closeness, axis=-1))
