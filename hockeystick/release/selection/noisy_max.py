"""The candidate with the largest score after noise, exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from hockeystick.errors import ParameterError
from hockeystick.mechanisms.selection import exponential as selections
from hockeystick.mechanisms.selection.exponential import ReportNoisyMax
from hockeystick.mechanisms.selection.permute_and_flip import PermuteAndFlip
from hockeystick.numerics import least_reading
from hockeystick.release._values import numbers, of_kind, sensitivity_of, yes_or_no
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.samplers import (
    Bits,
    RealNoise,
    noisy_argmax,
    secret_bits,
    uniform_integers,
)


def exponential(
    mechanism: selections.Exponential,
    scores: Any,
    sensitivity: float,
    *,
    monotone: bool = False,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> int:
    """Return a candidate with probability exponential in its score.

    ``P(i)`` is proportional to ``exp(epsilon scores_i / (2 S))`` with S the sensitivity; to
    ``exp(epsilon scores_i / S)`` where all scores move the same way.

    Guarantees:
        That of the mechanism. Scores are taken as the binary fractions that they are, and what is
        returned is the place of the largest ``scores_i + (2 S / epsilon) G_i`` of real numbers,
        with Gumbel noise G_i: it has exactly that probability if the bits are ideal. Ratios of
        probabilities are those of the formula with the larger reading of S and the smaller one of
        epsilon, float or decimal.

    Edge cases:
        Epsilon 0 draws one of all alike, inf the first of the best. Equal scores are equally likely
        at any other epsilon. One candidate is selected for certain.

    Args:
        mechanism: The exponential mechanism.
        scores: A row of one or more numbers, one for each candidate: floats, or integers up to
            ``2^53`` in size. The number of candidates is public.
        sensitivity: The most that any of the *floats* given moves between neighbouring data sets; a
            finite number > 0 in the scores' unit.
        monotone: Whether between two neighbouring data sets all scores move the same way, as
            counts under add-remove do.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the noise is drawn.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        The place of the candidate, from 0.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        McSherry and Talwar, "Mechanism Design via Differential Privacy", 2007; Durfee and Rogers,
        NeurIPS 2019 (Gumbel noise); Ilvento, "Implementing the Exponential Mechanism with Base-2
        Differential Privacy", CCS 2020 (the attack on floats).

    Example:
        >>> import hockeystick as hs
        >>> hs.release.exponential(hs.Exponential(epsilon=1), [0, 3000, 5], sensitivity=1)
        1
    """
    own = of_kind(mechanism, selections.Exponential)
    return _selected(own, RealNoise.GUMBEL, scores, sensitivity, monotone, charge, bits)


def report_noisy_max(
    mechanism: ReportNoisyMax,
    scores: Any,
    sensitivity: float,
    *,
    monotone: bool = False,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> int:
    """Return the candidate whose score is the largest after noise is added to each.

    The place of the largest ``scores_i + (2 S / epsilon) Z_i`` with S the sensitivity, and without
    the 2 where all scores move the same way. The noise Z_i is the mechanism's: Gumbel, exponential
    or Laplace of scale 1, fresh for each candidate.

    Guarantees:
        That of the mechanism. Scores are taken as the binary fractions that they are, and sums are
        compared as real numbers, with as many bits of each noise as that takes: no noise is ever
        rounded. The largest sum itself is not released.

    Edge cases:
        Epsilon 0 draws one of all alike, inf the first of the best.

    Args:
        mechanism: Report noisy max.
        scores: As for ``exponential``.
        sensitivity: As for ``exponential``.
        monotone: As for ``exponential``.
        charge: As for ``exponential``.
        bits: As for ``exponential``.

    Returns:
        The place of the candidate, from 0.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        Dwork and Roth 2014, section 3.3.

    Example:
        >>> import hockeystick as hs
        >>> noisy = hs.mechanisms.ReportNoisyMax(epsilon=1, noise="laplace")
        >>> hs.release.report_noisy_max(noisy, [0, 3000, 5], sensitivity=1)
        1
    """
    own = of_kind(mechanism, ReportNoisyMax)
    return _selected(own, RealNoise(own.noise.value), scores, sensitivity, monotone, charge, bits)


def permute_and_flip(
    mechanism: PermuteAndFlip,
    scores: Any,
    sensitivity: float,
    *,
    monotone: bool = False,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> int:
    """Return the candidate that permute-and-flip selects.

    Candidates in random order are accepted with probability
    ``exp(epsilon (scores_i - best) / (2 S))``, without the 2 where all scores move the same way;
    the first that is accepted is returned. The same distribution as that of the place of the
    largest ``scores_i + (2 S / epsilon) E_i`` with exponential noise, which is what is drawn.

    Guarantees:
        That of the mechanism; exact as ``exponential`` is. Never worse in expectation than
        ``exponential`` with the same epsilon.

    Edge cases:
        Epsilon 0 draws one of all alike, inf the first of the best.

    Args:
        mechanism: Permute-and-flip.
        scores: As for ``exponential``.
        sensitivity: As for ``exponential``.
        monotone: As for ``exponential``.
        charge: As for ``exponential``.
        bits: As for ``exponential``.

    Returns:
        The place of the candidate, from 0.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        McKenna and Sheldon, "Permute-and-Flip", NeurIPS 2020; Ding, Kifer, Sayed, Steinke, Wang,
        Xiao and Zhang, "The Permute-and-Flip Mechanism is Identical to Report-Noisy-Max with
        Exponential Noise", 2021.

    Example:
        >>> import hockeystick as hs
        >>> flipped = hs.mechanisms.PermuteAndFlip(epsilon=1)
        >>> hs.release.permute_and_flip(flipped, [0, 3000, 5], sensitivity=1)
        1
    """
    own = of_kind(mechanism, PermuteAndFlip)
    return _selected(own, RealNoise.EXPONENTIAL, scores, sensitivity, monotone, charge, bits)


def _selected(
    mechanism: selections.Exponential | ReportNoisyMax | PermuteAndFlip,
    noise: RealNoise,
    scores: Any,
    sensitivity: object,
    monotone: object,
    charge: Any,
    bits: Bits,
) -> int:
    """Return the place of the largest score after noise, once the mechanism is charged."""
    given = numbers("scores", scores)
    if given.ndim != 1 or given.size == 0:
        raise ParameterError("scores", f"an array of shape {given.shape}", "a row of numbers")
    moves = sensitivity_of(sensitivity)
    factor = 1 if yes_or_no("monotone", monotone) else 2
    book(checked_charge(charge), mechanism)
    if mechanism.epsilon == 0.0:
        return int(uniform_integers(given.size, 1, bits=bits)[0])
    scale = Fraction(0)
    if mechanism.epsilon < math.inf:
        scale = factor * moves / least_reading(mechanism.epsilon)
    return noisy_argmax(given.tolist(), noise, scale, bits=bits)
