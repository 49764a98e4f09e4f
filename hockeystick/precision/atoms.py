"""Mechanisms with few outputs: the values of the loss and their probabilities, to any precision.

Lists are of pairs (loss, probability under P), ascending in the loss.
"""

from __future__ import annotations

from collections.abc import Sequence

from hockeystick.numerics.multiprecision import mp, mpf

AtomList = list[tuple[mpf, mpf]]


def three_points(epsilon: mpf, nothing: mpf) -> AtomList:
    """Return ``+-epsilon`` as e^epsilon to 1, and 0 with the probability ``nothing``."""
    rest = (1 - nothing) / (1 + mp.exp(-epsilon))
    lost = (-epsilon, rest * mp.exp(-epsilon))
    won = (epsilon, rest)
    return [lost, (mp.zero, nothing), won] if nothing else [lost, won]


def randomized_response(epsilon: mpf, categories: int) -> AtomList:
    """Return the atoms of K-ary randomized response: K - 2 of the outputs have loss 0."""
    small = mp.exp(-epsilon)
    return three_points(epsilon, (categories - 2) * small / (1 + (categories - 1) * small))


def binary_runs(epsilon: mpf, runs: int) -> AtomList:
    """Return the atoms of the composition of several binary randomized responses of epsilon.

    ``k`` of them are true with binomial probability; the loss is then ``(2k - runs) epsilon``.
    """
    odds = mp.exp(epsilon)
    probability = mp.exp(-runs * mp.log1p(odds))
    found = []
    for k in range(runs + 1):
        found.append(((2 * k - runs) * epsilon, probability))
        probability = probability * odds * (runs - k) / (k + 1)
    return found


def delta(atoms: Sequence[tuple[mpf, mpf]], epsilon: mpf) -> mpf:
    """Return ``sum p (1 - e^(epsilon - loss))`` over the losses above epsilon: no cancellation."""
    above = [(loss, p) for loss, p in atoms if loss > epsilon]
    return mp.fsum(-p * mp.expm1(epsilon - loss) for loss, p in above)
