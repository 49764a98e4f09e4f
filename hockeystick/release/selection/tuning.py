"""Searches for hyperparameters on private data: the whole search is charged, one run released."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

import numpy as np

from hockeystick import _validate
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism, checked
from hockeystick.mechanisms.selection.tuning import RandomStopping
from hockeystick.release._values import of_kind
from hockeystick.release.charging import Charged, book, checked_charge
from hockeystick.release.samplers import Bits, run_count, secret_bits, uniform_integers

_Candidate = TypeVar("_Candidate")
_Output = TypeVar("_Output")
_A_PAIR = "a pair (output, score), the score a number"


@final
@dataclass(frozen=True, slots=True)
class Best(Generic[_Candidate, _Output]):
    """The best run of a search: all that is released of it.

    Args:
        candidate: The hyperparameters of that run.
        output: What it returned.
        score: Its score, a part of the output.
        mechanism: What the whole search costs, and what was charged.
    """

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

    Guarantees:
        All runs together cost ``mechanism ** k`` for k candidates, by composition; so also whoever
        saw every run's output would learn no more.

    Edge cases:
        A score that is no number (nan) is the worst. Of equal scores the first is the best.

    Args:
        mechanism: What one run costs, whichever candidate it is of: all of a run, its score on
            private data included.
        candidates: One or more hyperparameters, chosen without looking at the data.
        run: What trains with a candidate and returns its output and its score; larger is better.
            It does not charge by itself what is charged here.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``, which is
            charged for all runs before the first begins. Where a run fails, the charge stays.

    Returns:
        The best run, and what the search costs.

    Raises:
        ParameterError: If an argument is outside its domain, nothing being charged then; or if a
            run returns no pair of an output and a number.
        BudgetExhausted: If the filter refuses; nothing runs then.

    References:
        van Dijk et al., "Considerations on the Theory of Training Models with Differential
        Privacy", section 3 (a grid on the clients' data has to be charged).

    Example:
        >>> import hockeystick as hs
        >>> def mean(bound):
        ...     noise = hs.Gaussian(noise_multiplier=5)
        ...     total = hs.release.gaussian(noise, min(bound, 3) * 1000.0, sensitivity=bound)
        ...     return total / 1000, -abs(bound - 2)
        >>> one_run = hs.Gaussian(noise_multiplier=5)
        >>> best = hs.release.grid_search(one_run, [1, 2, 4], mean)
        >>> best.candidate, str(best.mechanism)
        (2, 'Gaussian (noise multiplier 5) x 3')
    """
    whole = checked("mechanism", mechanism)
    known = _checked_candidates(candidates)
    called = _checked_run(run)
    total = whole ** len(known)
    book(checked_charge(charge), total)
    scored = [(one, *_scored(called(one))) for one in known]
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

    Guarantees:
        That of ``RandomStopping``: the number of runs is drawn exactly from its distribution before
        the first run, and each run's candidate is drawn uniformly and independently. Nothing of the
        other runs, and not their number, may be shown to those who see what is released: no
        progress, no log, no time.

        And no error: one that a run raises ends the search, and tells whoever sees it that there
        were at least as many runs, what that one came to, and whatever its text shows: no theorem
        covers it. Where data can make a run fail, that it failed is part of its output, has to be
        as private as the rest, and is to be returned, as a fixed output with the score nan.

    Edge cases:
        None where the number of runs that was drawn is 0. A score that is no number
        (nan) is the worst. Of equal scores the first is the best, which is a random one of them.

    Args:
        mechanism: The tuning: one run's cost and the distribution of the number of runs.
        candidates: One or more hyperparameters, chosen without looking at the data. One that is
            listed twice is drawn twice as often.
        run: As for ``grid_search``. Runs have to be independent: nothing is carried from one to
            the next.
        charge: As for ``grid_search``.
        bits: The source of random 64-bit words; another than the operating system's is for tests.

    Returns:
        The best run, and what the search costs; or None.

    Raises:
        ParameterError: As for ``grid_search``.
        BudgetExhausted: If the filter refuses; nothing runs then.
        OSError: If the operating system has no random bits to give; the charge stays.

    References:
        Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022;
        Liu and Talwar, "Private Selection from Private Candidates", STOC 2019.

    Example:
        >>> import hockeystick as hs
        >>> run = hs.Gaussian(noise_multiplier=5)
        >>> stopping = hs.mechanisms.tuning.TruncatedNegativeBinomial.of_mean(5)
        >>> tuned = hs.mechanisms.RandomStopping(run, stopping)
        >>> def noisy(rate):
        ...     score = float(hs.release.gaussian(run, 1000.0 * rate, sensitivity=1))
        ...     return rate, score
        >>> best = hs.release.random_search(tuned, [0.1, 0.2, 0.4], noisy)
        >>> best.candidate in (0.1, 0.2, 0.4) and best.mechanism == tuned
        True
    """
    own = of_kind(mechanism, RandomStopping)
    known = _checked_candidates(candidates)
    called = _checked_run(run)
    charged = checked_charge(charge)
    runs = run_count(own.distribution, bits=bits)
    book(charged, own)
    best: Best[_Candidate, _Output] | None = None
    for _ in range(runs):
        candidate = known[int(uniform_integers(len(known), 1, bits=bits)[0])]
        output, score = _scored(called(candidate))
        if best is None or _rank(score) > _rank(best.score):
            best = Best(candidate, output, score, own)
    return best


def _checked_candidates(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Return the candidates as a list, or raise where there is none."""
    given: Any = candidates
    listed = isinstance(given, Sequence | np.ndarray) and _validate.has_several(given)
    if isinstance(given, str | bytes) or not listed:
        raise ParameterError("candidates", type(given).__name__, "a list of hyperparameters")
    if len(given) == 0:
        raise ParameterError("candidates", type(given).__name__, "at least one")
    return list(given)


def _checked_run(run: Callable[[_Candidate], Any]) -> Callable[[_Candidate], Any]:
    """Return what runs, or raise where it cannot be called."""
    if not callable(run):
        raise ParameterError("run", run, f"a function that returns {_A_PAIR}")
    return run


def _scored(found: Any) -> tuple[Any, float]:
    """Return an output and its score, or raise, without showing what may be private."""
    if not (isinstance(found, tuple) and len(found) == 2):
        raise ParameterError("run", f"what returned {type(found).__name__}", f"{_A_PAIR}")
    try:
        return found[0], float(found[1])
    except (TypeError, ValueError, OverflowError):
        kind = type(found[1]).__name__
        raise ParameterError("run", f"what returned a score of {kind}", f"{_A_PAIR}") from None


def _rank(score: float) -> float:
    """Return the score, or -inf where it is no number."""
    return -math.inf if math.isnan(score) else score
