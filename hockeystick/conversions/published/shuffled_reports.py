"""Shuffled reports: the clones' divergence on both sides, and published closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.accountants.interval import Interval
from hockeystick.accountants.prv import PRV
from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.notions import ApproxDP
from hockeystick.privacy_loss import DominatedLoss, StrongerClonesLoss, Terms
from hockeystick.privacy_loss.local.shuffled_reports import LEAST_EPSILON, MOST_EPSILON
from hockeystick.results import Certified, Quantity

_LOCAL: Final = Domain(
    symbol="eps_0", low=LEAST_EPSILON, high=MOST_EPSILON, typical=(0.1, 8), low_open=False
)
_ANY_LOCAL: Final = Domain(symbol="eps_0", low=0, high=300, typical=(0.1, 8))
_USERS: Final = Domain(symbol="n", low=2, high=10**9, typical=(100, 10**7), whole=True)
_MANY: Final = whole_numbers("n", 1, (100, 10**7))
_DELTA: Final = Domain(
    symbol="delta", low=0, high=1, low_open=True, high_open=True, typical=(1e-12, 1e-4)
)
# Of the formulas, a few roundings of a few units in the last place each.
_OUTWARD: Final = 2.0**-46


def clones_epsilon(randomizer_epsilon: float, users: int, delta: float) -> Certified:
    """Return epsilon of the stronger clones' pair itself, which dominates all shuffled reports.

    With ``tau = tanh(epsilon_0/2)``, ``T = 1 + Bin(n - 1, 1 - tau)`` and S the sum of T fair signs,
    the pair has ``delta(epsilon) = (1 + e^epsilon) E[(tau S/T - tanh(epsilon/2))_+]``.

    Guarantees:
        Both ends are proven for the pair. The upper end holds for every epsilon_0-DP randomizer and
        all data, as that of ``ShuffledReports``; the lower end is the pair's, which particular
        randomizers need not reach: it says how much of the upper end is due to rounding.

    Edge cases:
        Epsilon is 0 where delta is at least the total variation of the pair.

    Args:
        randomizer_epsilon: epsilon_0, from 10^-6 to 20.
        users: The number n of users, an integer from 2 to 10^9.
        delta: Above 0 and below 1.

    Returns:
        An interval around the pair's epsilon.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Feldman, McMillan and Talwar 2023 (arXiv 2208.04591).

    Example:
        >>> found = clones_epsilon(4.0, users=100_000, delta=1e-6)
        >>> print(f"between {found.lower:.4f} and {found.upper:.4f}")
        between 0.1182 and 0.1182
    """
    at = _validate.real("delta", delta, _DELTA)
    return _certified(randomizer_epsilon, users, "epsilon", at, lambda t: PRV().epsilon_of(t, at))


def clones_delta(randomizer_epsilon: float, users: int, epsilon: float) -> Certified:
    """Return delta of the stronger clones' pair itself, as ``clones_epsilon`` does epsilon.

    Guarantees:
        As for ``clones_epsilon``.

    Edge cases:
        From epsilon_0 on, delta is 0.

    Args:
        randomizer_epsilon: As for ``clones_epsilon``.
        users: As for ``clones_epsilon``.
        epsilon: In [0, inf].

    Returns:
        An interval around the pair's delta.

    Raises:
        ParameterError: If a parameter is outside its domain.

    Example:
        >>> print(f"{clones_delta(1.0, users=200, epsilon=0.4).upper:.8g}")
        9.7242811e-08
    """
    at = _validate.real("epsilon", epsilon)
    return _certified(randomizer_epsilon, users, "delta", at, lambda t: PRV().delta_of(t, at))


def _certified(
    local: float, users: int, quantity: Quantity, at: float, read: Callable[[Terms], Interval]
) -> Certified:
    """Return epsilon or delta of the pair."""
    own = _validate.real("randomizer_epsilon", local, _LOCAL)
    count = _validate.count("users", users, _USERS)
    above, below = (StrongerClonesLoss(own, 2, count, side) for side in (True, False))
    found = read(((DominatedLoss(above, below), 1),)).ordered()
    return Certified(
        found.lower,
        found.estimate,
        found.upper,
        quantity=quantity,
        accountant="stronger clones",
        adjacency=Adjacency.REPLACE_ONE,
        assumptions=(Adjacency.REPLACE_ONE.meaning,),
        at=at,
    )


def hiding_among_clones(randomizer_epsilon: float, users: int, delta: float) -> ApproxDP:
    """Return the guarantee of shuffled reports by the closed form of 2021.

        ln(1 + tanh(epsilon_0/2) (8 sqrt(e^epsilon_0 ln(4/delta) / n) + 8 e^epsilon_0 / n))

    Guarantees:
        An upper bound for every epsilon_0-DP randomizer, where ``n >= 16 e^epsilon_0 ln(4/delta)``.
        The theorem asks for ``ln(2/delta)`` there, its authors' code for ``ln(4/delta)``: the
        stricter condition is used.

    Edge cases:
        Epsilon_0 = 0 costs nothing. Never more than epsilon_0.

    Args:
        randomizer_epsilon: epsilon_0, in [0, 300].
        users: The number n of users, an integer from 1 to 10^15.
        delta: Above 0 and below 1.

    Returns:
        ``ApproxDP(epsilon, delta)`` under replace-one, rounded up.

    Raises:
        ParameterError: If a parameter is outside its domain, or there are too few users.

    References:
        Feldman, McMillan and Talwar, "Hiding Among the Clones: A Simple and Nearly Optimal Analysis
        of Privacy Amplification by Shuffling", FOCS 2021 (arXiv 2012.12803), theorem III.1.

    Example:
        >>> print(hiding_among_clones(4.0, users=100_000, delta=1e-6).epsilon)
        0.53463399165...
    """
    own, count, at = _checked(randomizer_epsilon, users, delta)
    odds, log = math.exp(own), math.log(4.0) - math.log(at)
    _enough(count, 16.0 * odds * log)
    size = 8.0 * math.sqrt(odds * log / count) + 8.0 * odds / count
    return _guarantee(own, size, at)


def stronger_clones_bound(randomizer_epsilon: float, users: int, delta: float) -> ApproxDP:
    """Return a guarantee of shuffled reports in closed form, from the stronger clones.

    With ``m = (n - 1) / (e^epsilon_0 + 1)``, half of the mean number C of clones,

        ln(1 + tanh(epsilon_0/2) (sqrt(32 ln(2/delta) / m) + 4/m)),    m >= 8 ln(2/delta).

    The loss is ``ln(1 + 2 tau s / (t - tau s))`` where the t = C + 1 reports of clones and victim
    differ by s between the two kinds. By Chernoff's bound C < m has probability at most
    ``e^(-m/4) <= delta/2``, and by Hoeffding's ``s > 1 + sqrt(2 C ln(2/delta))`` as much.
    Elsewhere ``s <= 1 + C/2``, so that ``t - tau s >= C/2``, and the bound decreases in C.

    Guarantees:
        An upper bound for every epsilon_0-DP randomizer, where the condition on m holds.

    Edge cases:
        Epsilon_0 = 0 costs nothing. Never more than epsilon_0.

    Args:
        randomizer_epsilon: epsilon_0, in [0, 300].
        users: The number n of users, an integer from 1 to 10^15.
        delta: Above 0 and below 1.

    Returns:
        ``ApproxDP(epsilon, delta)`` under replace-one, rounded up.

    Raises:
        ParameterError: If a parameter is outside its domain, or there are too few users.

    References:
        Feldman, McMillan and Talwar 2023 (arXiv 2208.04591), for the pair; the constants are those
        of the proof above.

    Example:
        >>> print(f"{stronger_clones_bound(4.0, users=100_000, delta=1e-6).epsilon:.6f}")
        0.400074
    """
    own, count, at = _checked(randomizer_epsilon, users, delta)
    odds, log = math.exp(own), math.log(2.0) - math.log(at)
    _enough(count, 1.0 + 8.0 * (odds + 1.0) * log)
    half = (count - 1) / (odds + 1.0)
    return _guarantee(own, math.sqrt(32.0 * log / half) + 4.0 / half, at)


def _checked(local: float, users: int, delta: float) -> tuple[float, int, float]:
    """Return the parameters, or raise."""
    return (
        _validate.real("randomizer_epsilon", local, _ANY_LOCAL),
        _validate.count("users", users, _MANY),
        _validate.real("delta", delta, _DELTA),
    )


def _enough(users: int, least: float) -> None:
    """Raise where there are fewer users than a bound is proven for."""
    if users < least * (1.0 + _OUTWARD):
        allowed = f"at least {math.ceil(least):,} for this bound to hold; use ShuffledReports"
        raise ParameterError("users", users, allowed)


def _guarantee(local: float, size: float, delta: float) -> ApproxDP:
    """Return ``ln(1 + tau size)``, rounded up, at most the randomizer's epsilon."""
    value = math.log1p(math.tanh(0.5 * local) * size) * (1.0 + _OUTWARD)
    return ApproxDP(min(value, local), delta)
