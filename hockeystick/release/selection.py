"""Selections: the best candidate, queries above a threshold, partitions, hyperparameters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from threading import Lock
from typing import Any, Final, Generic, TypeVar, final

import numpy as np

from hockeystick import _validate
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import AboveThreshold, PartitionSelection, RandomStopping, SparseVector
from hockeystick.mechanisms.base import Mechanism, checked
from hockeystick.mechanisms.noise.integer_noise import DiscreteGaussian, DiscreteLaplace
from hockeystick.mechanisms.selection import exponential as selections
from hockeystick.mechanisms.selection.exponential import PermuteAndFlip, ReportNoisyMax
from hockeystick.numerics import largest_reading, least_reading
from hockeystick.release import samplers
from hockeystick.release._values import integers, of_kind, sensitivity_of, shaped, yes_or_no
from hockeystick.release.counting import Charged, ChargedRun, book, checked_charge
from hockeystick.release.noise.arrays import integer_noise
from hockeystick.release.samplers import Bits, NoisyNumber, RealNoise, secret_bits, uniform_integers
from hockeystick.release.samplers.bits import POSITIVE, words_from

_Kinds = selections.Exponential | ReportNoisyMax | PermuteAndFlip
_Key = TypeVar("_Key", bound=Hashable)
_Candidate = TypeVar("_Candidate")
_Output = TypeVar("_Output")

_RUNNABLE: Final = "a PartitionSelection with DiscreteGaussian or DiscreteLaplace noise"
_COUNTS: Final = "a mapping from each partition to its number of users, integers >= 1"
_ORDERED: Final = "partitions that can be sorted, as texts or numbers are"
_PAIRS: Final = "pairs of a user and a partition, both hashable"
_A_SCORE: Final = "a pair (output, score), the score a number"


def exponential(
    mechanism: selections.Exponential,
    scores: Any,
    sensitivity: float,
    *,
    monotone: bool = False,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> int:
    """Return the place of a candidate, from 0, with probability exponential in its score.

    ``P(i)`` is proportional to ``exp(epsilon scores_i / (2 S))``; without the 2 where all scores
    move the same way (``monotone``), as counts under add-remove do. Epsilon 0 draws one of all
    alike, inf the first of the best. S is the most that any of the *floats* given moves between
    neighbouring data sets, a finite number > 0, and the number of candidates is public. Drawn as
    the place of the largest real number ``scores_i + (2 S / epsilon) G_i`` with Gumbel noise G_i
    (McSherry and Talwar 2007; Durfee and Rogers, NeurIPS 2019; Ilvento, CCS 2020).

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
    """Return the place of the largest ``scores_i + (2 S / epsilon) Z_i``.

    Z_i is the mechanism's noise, Gumbel, exponential or Laplace of scale 1; all else is as for
    ``exponential`` (Dwork and Roth 2014, section 3.3).

    Example:
        >>> import hockeystick as hs
        >>> hs.release.report_noisy_max(hs.mechanisms.ReportNoisyMax(epsilon=1), [0, 3000, 5], 1)
        1
    """
    own = of_kind(mechanism, ReportNoisyMax)
    return _selected(own, RealNoise(own.noise), scores, sensitivity, monotone, charge, bits)


def permute_and_flip(
    mechanism: PermuteAndFlip,
    scores: Any,
    sensitivity: float,
    *,
    monotone: bool = False,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> int:
    """Return the first candidate, in random order, that permute-and-flip accepts.

    With probability ``exp(epsilon (scores_i - best) / (2 S))``; drawn as the place of the largest
    ``scores_i + (2 S / epsilon) E_i`` with exponential noise. All else is as for ``exponential``
    (McKenna and Sheldon, NeurIPS 2020; Ding et al. 2021).

    Example:
        >>> import hockeystick as hs
        >>> hs.release.permute_and_flip(hs.mechanisms.PermuteAndFlip(epsilon=1), [0, 3000, 5], 1)
        1
    """
    own = of_kind(mechanism, PermuteAndFlip)
    return _selected(own, RealNoise.EXPONENTIAL, scores, sensitivity, monotone, charge, bits)


def _selected(
    own: _Kinds, noise: RealNoise, scores: Any, moves: Any, monotone: Any, charge: Any, bits: Bits
) -> int:
    """Return the place of the largest score after noise, once the mechanism is charged."""
    given = shaped("scores", scores, "a row of numbers", lambda row: row.ndim == 1 and row.size)
    moved = sensitivity_of(moves) * (1 if yes_or_no("monotone", monotone) else 2)
    book(checked_charge(charge), own)
    if own.epsilon == 0.0:
        return int(uniform_integers(given.size, 1, bits=bits)[0])
    scale = moved / least_reading(own.epsilon) if own.epsilon < math.inf else Fraction(0)
    return samplers.noisy_argmax(given.tolist(), noise, scale, bits=bits)


def above_threshold(
    mechanism: AboveThreshold,
    threshold: float,
    sensitivity: float,
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> ThresholdQueries:
    """Return a run that says of one query after the other whether it is above a threshold.

    It ends with the first that is: the first i for which ``answer_i + S b Z_i >= threshold + S a
    Z`` of real numbers, a and b the mechanism's finite threshold and query scales, and its noises,
    all fresh. It is charged once, here, whatever the number of queries, which may follow outcomes
    (Dwork and Roth 2014, algorithm 1; Lyu, Su and Li 2017: variants that are not private).

    The threshold is finite and does not depend on the data; S is that of the answers.

    Example:
        >>> import hockeystick as hs
        >>> run = hs.release.above_threshold(hs.mechanisms.AboveThreshold(2, 4), 1000, 1)
        >>> [run.above(count) for count in (3, 12, 5000)], run.ended
        ([False, False, True], True)
    """
    return ThresholdQueries(
        of_kind(mechanism, AboveThreshold), threshold, sensitivity, charge, bits
    )


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
    there are ``mechanism.positives`` of them, all charged at once; ``mechanism.queries`` answers
    "below", if limited, use up a positive too (Dwork and Roth 2014, algorithm 2).

    Example:
        >>> import hockeystick as hs
        >>> run = hs.release.sparse_vector(hs.mechanisms.SparseVector(2, 4, positives=2), 1000, 1)
        >>> [run.above(count) for count in (3, 5000, 12, 9000)], run.ended
        ([False, True, False, True], True)
    """
    return ThresholdQueries(of_kind(mechanism, SparseVector), threshold, sensitivity, charge, bits)


@final
class ThresholdQueries(ChargedRun):
    """A run that compares queries with a noisy threshold, for several threads too."""

    __slots__ = ("_asked", "_bits", "_left", "_lock", "_once", "_sensitivity", "_threshold", "_top")

    def __init__(
        self, mechanism: Any, threshold: float, sensitivity: float, charge: Any, bits: Bits
    ) -> None:
        alone = isinstance(mechanism, AboveThreshold)
        once = mechanism if alone else mechanism.once
        if max(once.threshold_scale, once.query_scale) == math.inf:
            raise ParameterError("mechanism", mechanism, "of finite scales where it is run")
        super().__init__()
        self._once, self._left, self._bits = once, 1 if alone else mechanism.positives, bits
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

        ``IncompatibleError`` says that it has ended, or that this process was forked from its own.
        """
        exact = _number("answer", answer)
        self._check_process()
        with self._lock:
            if self.ended:
                raise IncompatibleError("the run has ended: its mechanism has no further query")
            once = self._once
            if self._top is None:
                self._top = self._noisy(self._threshold, once.threshold_noise, once.threshold_scale)
            query = self._noisy(exact, once.query_noise, once.query_scale)
            found = query.exceeds(self._top)
            self._asked += 1
            if found or self._asked == once.queries:
                self._left, self._asked, self._top = self._left - 1, 0, None
            return found

    def _noisy(self, value: Fraction, noise: str, scale: float) -> NoisyNumber:
        word = int(words_from(self._bits, 1)[0])
        spread = largest_reading(scale) * self._sensitivity
        return NoisyNumber(value, RealNoise(noise), spread, word, self._bits)


def _number(name: str, value: Any) -> Fraction:
    return Fraction(float(shaped(name, value, "one finite number", lambda one: one.ndim == 0)))


def partition_selection(
    mechanism: PartitionSelection,
    users: Mapping[_Key, int],
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> dict[_Key, int]:
    """Return the partitions whose noisy number of users reaches the threshold, with that number.

    ``{p: users[p] + Z_p : users[p] + Z_p >= threshold}`` for the numbers of users, from 1 to 2^62,
    of each partition that any user has; all noises are fresh integers, of ``DiscreteGaussian`` or
    ``DiscreteLaplace``. Each user is to be counted once in each of at most ``mechanism.partitions``
    partitions: ``users_by_partition`` sees to it. Keys are shown sorted, so that their order says
    nothing of who is not shown (Korolova, Kenthapadi, Mishra and Ntoulas, WWW 2009).

    Example:
        >>> import hockeystick as hs
        >>> shown = hs.mechanisms.PartitionSelection(hs.DiscreteGaussian(4), threshold=30)
        >>> sorted(hs.release.partition_selection(shown, {"flu": 9000, "ebola": 1, "cold": 400}))
        ['cold', 'flu']
    """
    own = of_kind(mechanism, PartitionSelection)
    if not isinstance(own.noise, DiscreteGaussian | DiscreteLaplace):
        raise ParameterError("mechanism", own, _RUNNABLE)
    if not isinstance(users, Mapping):
        raise ParameterError("users", type(users).__name__, _COUNTS)
    try:
        keys: list[Any] = sorted(users)
        ordered = all(one < other for one, other in pairwise(keys))
    except TypeError:
        ordered = False
    if not ordered:
        raise ParameterError("users", "keys without an order", _ORDERED)
    counts = integers("users", [users[key] for key in keys] or np.zeros(0, dtype=np.int64))
    if bool((counts < 1).any()):
        raise ParameterError("users", "with a number below 1", _COUNTS)
    noise, least = integer_noise(own.noise, bits), largest_reading(own.threshold)
    book(checked_charge(charge), own)
    noisy = counts + noise(counts.size)
    return {key: int(n) for key, n in zip(keys, noisy, strict=True) if int(n) >= least}


def users_by_partition(
    pairs: Iterable[tuple[Hashable, _Key]], partitions: int, *, bits: Bits = secret_bits
) -> dict[_Key, int]:
    """Return the number of users of each partition, each user counted in at most k of them.

    Pairs are of a user and a partition, also repeated; of a user's more than ``partitions`` k any k
    are equally likely. The numbers are private: they are for ``partition_selection`` alone.

    Example:
        >>> import hockeystick as hs
        >>> visits = [("Ann", "flu"), ("Ann", "flu"), ("Bob", "flu"), ("Bob", "cold")]
        >>> hs.release.users_by_partition(visits, partitions=2)
        {'flu': 2, 'cold': 1}
    """
    most = _validate.count("partitions", partitions, POSITIVE)
    if not _validate.has_several(pairs) or isinstance(pairs, str | Mapping):
        raise ParameterError("pairs", type(pairs).__name__, _PAIRS)
    users: dict[Hashable, dict[_Key, None]] = {}
    for pair in pairs:
        try:
            if isinstance(pair, str | bytes):
                raise TypeError
            user, key = pair
            users.setdefault(user, {})[key] = None
        except (TypeError, ValueError):
            kind = type(pair).__name__
            raise ParameterError("pairs", f"with a {kind} among them", _PAIRS) from None
    counts = Counter[_Key]()
    for kept in map(list, users.values()):
        if len(kept) > most:
            kept = [kept[place] for place in samplers.permutation(len(kept), bits=bits)[:most]]
        counts.update(kept)
    return dict(counts)


@final
@dataclass(frozen=True, slots=True)
class Best(Generic[_Candidate, _Output]):
    """The best run of a search, and what the whole search costs."""

    candidate: _Candidate
    output: _Output
    score: float
    mechanism: Mechanism


def grid_search(
    mechanism: Mechanism,
    candidates: Sequence[_Candidate],
    run: Callable[[_Candidate], tuple[_Output, float]],
    *,
    charge: Charged | None = None,
) -> Best[_Candidate, _Output]:
    """Run each candidate of a fixed list once, and return the best.

    All runs together cost ``mechanism ** k`` for k candidates, whoever sees them; they are charged
    before the first begins. Of equal scores the first is the best; nan is the worst.

    The mechanism is what one run costs, its score on private data included; candidates do not
    depend on the data; run trains with one and returns its output and its score, best the largest.

    Example:
        >>> import hockeystick as hs
        >>> best = hs.release.grid_search(hs.Gaussian(5), [1, 2, 4], lambda c: (c, -abs(c - 2)))
        >>> best.candidate, str(best.mechanism)
        (2, 'Gaussian (noise multiplier 5) x 3')
    """
    whole = checked("mechanism", mechanism)
    known = _checked_search(candidates, run)
    total = whole ** len(known)
    book(checked_charge(charge), total)
    scored = [(one, *_scored(run(one))) for one in known]
    candidate, output, score = max(scored, key=lambda found: _rank(found[2]))
    return Best(candidate, output, score, total)


def random_search(
    mechanism: RandomStopping,
    candidates: Sequence[_Candidate],
    run: Callable[[_Candidate], tuple[_Output, float]],
    *,
    charge: Charged | None = None,
    bits: Bits = secret_bits,
) -> Best[_Candidate, _Output] | None:
    """Run a secret, random number of candidates, each drawn afresh, and return the best run.

    All else is as for ``grid_search``; runs have to be independent. None where no run was drawn.
    **Nothing of the other runs, and not their number, may be shown** to those who see what is
    released: no progress, no log, no time, and no error, which no theorem covers. Where data can
    make a run fail, return a fixed output with the score nan (Papernot and Steinke, ICLR 2022).

    Example:
        >>> import hockeystick as hs
        >>> search = hs.mechanisms.RandomStopping(hs.Gaussian(5), hs.mechanisms.tuning.Poisson(9))
        >>> best = hs.release.random_search(search, [1, 2, 4], lambda c: (c, -abs(c - 2)))
        >>> best is None or best.score == -abs(best.candidate - 2)
        True
    """
    own = of_kind(mechanism, RandomStopping)
    known = _checked_search(candidates, run)
    charged = checked_charge(charge)
    runs = samplers.run_count(own.distribution, bits=bits)
    book(charged, own)
    best: Best[_Candidate, _Output] | None = None
    for _ in range(runs):
        candidate = known[int(uniform_integers(len(known), 1, bits=bits)[0])]
        output, score = _scored(run(candidate))
        if best is None or _rank(score) > _rank(best.score):
            best = Best(candidate, output, score, own)
    return best


def _checked_search(candidates: Any, run: Any) -> list[Any]:
    """Return the candidates, at least one, or raise."""
    listed = isinstance(candidates, Sequence | np.ndarray) and _validate.has_several(candidates)
    if isinstance(candidates, str | bytes) or not listed or len(candidates) == 0:
        allowed = "a list of one or more hyperparameters"
        raise ParameterError("candidates", type(candidates).__name__, allowed)
    if not callable(run):
        raise ParameterError("run", run, f"a function that returns {_A_SCORE}")
    return list(candidates)


def _scored(found: Any) -> tuple[Any, float]:
    """Return an output and its score, or raise, without showing what may be private."""
    if not (isinstance(found, tuple) and len(found) == 2):
        raise ParameterError("run", f"what returned {type(found).__name__}", _A_SCORE)
    try:
        return found[0], float(found[1])
    except (TypeError, ValueError, OverflowError):
        kind = type(found[1]).__name__
        raise ParameterError("run", f"what returned a score of {kind}", _A_SCORE) from None


def _rank(score: float) -> float:
    return -math.inf if math.isnan(score) else score
