"""Queries that are compared with a noisy threshold one by one, exactly."""

from __future__ import annotations

from fractions import Fraction
from threading import Lock
from typing import Any, final

from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.selection.sparse_vector import (
    AboveThreshold,
    ComparisonNoise,
    SparseVector,
)
from hockeystick.numerics import largest_reading
from hockeystick.release._values import numbers, of_kind, sensitivity_of
from hockeystick.release.charging import Charged, ChargedRun, book, checked_charge
from hockeystick.release.samplers import Bits, NoisyNumber, RealNoise, secret_bits
from hockeystick.release.samplers.bits import checked_words


def above_threshold(
    mechanism: AboveThreshold,
    threshold: float,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> ThresholdQueries:
    """Return a run that says of one query after the other whether it is above a threshold.

    It ends with the first that is: with the first i for which
    ``answer_i + S b Z_i >= threshold + S a Z`` with S the sensitivity, a and b the mechanism's
    threshold and query scale, and its noises, all fresh.

    Guarantees:
        That of the mechanism, which is charged once, here, before any noise is drawn, whatever the
        number of queries, which may be chosen as the outcomes come in. Answers and threshold are
        taken as the binary fractions that they are, and sums are compared as real numbers, with
        as many bits of each noise as that takes: no noise is ever rounded or released. Float and
        decimal readings of S and the scales are both covered.

    Edge cases:
        Scale 0 of either leaves out that noise.

    Args:
        mechanism: Above threshold, of finite scales.
        threshold: A finite number, which does not depend on the data.
        sensitivity: The most that any of the *floats* asked moves between neighbouring data sets; a
            finite number > 0 in the answers' unit.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged before the noise is drawn.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        The run; ask it with ``above``.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        Dwork and Roth 2014, algorithm 1; Lyu, Su and Li 2017 (variants that are not private).

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.AboveThreshold(threshold_scale=2, query_scale=4)
        >>> run = hs.release.above_threshold(noise, threshold=1000, sensitivity=1)
        >>> [run.above(count) for count in (3, 12, 5000)], run.ended
        ([False, False, True], True)
    """
    own = of_kind(mechanism, AboveThreshold)
    return ThresholdQueries(own, own, 1, threshold, sensitivity, charge, bits)


def sparse_vector(
    mechanism: SparseVector,
    threshold: float,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> ThresholdQueries:
    """Return a run that says which queries are above a threshold, up to a number of them.

    As ``above_threshold``, begun again with fresh noise of the threshold after each "above", until
    there are ``mechanism.positives`` of them.

    Guarantees:
        That of the mechanism, which is charged once for all positives; exact as ``above_threshold``
        is. No answer is released: for one of a query that is above, use another mechanism.

    Edge cases:
        No positives: the run has ended, and no query can be asked. Where the mechanism names the
        largest number of queries for each positive, as many "below" use up one of the positives.

    Args:
        mechanism: Sparse vector, of finite scales.
        threshold: As for ``above_threshold``.
        sensitivity: As for ``above_threshold``.
        charge: As for ``above_threshold``.
        bits: As for ``above_threshold``.

    Returns:
        The run; ask it with ``above``.

    Raises:
        ParameterError: If an argument is outside its domain; nothing is charged then.
        BudgetExhausted: If the filter refuses; nothing is drawn then.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        Dwork and Roth 2014, algorithm 2.

    Example:
        >>> import hockeystick as hs
        >>> noise = hs.mechanisms.SparseVector(20, 40, positives=2)
        >>> run = hs.release.sparse_vector(noise, threshold=10_000, sensitivity=1)
        >>> [run.above(count) for count in (90_000, 5, 80_000)], run.ended
        ([True, False, True], True)
    """
    own = of_kind(mechanism, SparseVector)
    return ThresholdQueries(own, own.once, own.positives, threshold, sensitivity, charge, bits)


@final
class ThresholdQueries(ChargedRun):
    """A run that compares queries with a noisy threshold: made by the two functions above.

    Several threads may ask it. It cannot be copied or pickled, nor asked in a forked process: noise
    would be used twice.
    """

    __slots__ = ("_asked", "_bits", "_left", "_lock", "_once", "_sensitivity", "_threshold", "_top")

    def __init__(
        self,
        mechanism: AboveThreshold | SparseVector,
        once: AboveThreshold,
        positives: int,
        threshold: float,
        sensitivity: float,
        charge: Charged | None,
        bits: Bits,
    ) -> None:
        if max(once.threshold_scale, once.query_scale) == float("inf"):
            raise ParameterError("mechanism", mechanism, "of finite scales where it is run")
        super().__init__()
        self._once, self._left, self._bits = once, positives, bits
        self._threshold = _number("threshold", threshold)
        self._sensitivity = sensitivity_of(sensitivity)
        self._lock, self._asked = Lock(), 0
        self._top: NoisyNumber | None = None
        book(checked_charge(charge), mechanism)

    @property
    def ended(self) -> bool:
        """Whether no further query may be asked."""
        return self._left == 0

    def above(self, answer: float) -> bool:
        """Return whether a query's noisy answer reaches the noisy threshold; the run may end.

        Args:
            answer: The query's answer on the data, a finite number.

        Raises:
            IncompatibleError: If the run has ended, or this process was forked from the run's.
            ParameterError: If the answer is no such number.
            OSError: If the operating system has no random bits to give; nothing is said then.
        """
        exact = _number("answer", answer)
        self._check_process()
        with self._lock:
            if self.ended:
                raise IncompatibleError(
                    "the run has ended: its description allows no further query; begin another "
                    "run, which is charged for itself"
                )
            if self._top is None:
                self._top = self._noisy(
                    self._threshold, self._once.threshold_noise, self._once.threshold_scale
                )
            query = self._noisy(exact, self._once.query_noise, self._once.query_scale)
            found = query.exceeds(self._top)
            self._asked += 1
            if found or self._asked == self._once.queries:
                self._left, self._asked, self._top = self._left - 1, 0, None
            return found

    def _noisy(self, value: Fraction, noise: ComparisonNoise, scale: float) -> NoisyNumber:
        """Return a number with fresh noise."""
        word = int(checked_words(self._bits, 1)[0])
        spread = largest_reading(scale) * self._sensitivity
        return NoisyNumber(value, RealNoise(noise.value), spread, word, self._bits)


def _number(name: str, value: Any) -> Fraction:
    """Return one finite number exactly, or raise."""
    given = numbers(name, value)
    if given.ndim != 0:
        raise ParameterError(name, f"an array of shape {given.shape}", "one finite number")
    return Fraction(float(given))
