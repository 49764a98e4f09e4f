"""What the literature says of epochs over shuffled or resampled data: an approximation, and groups.

The proven interval of shuffled epochs is that of ``Shuffled(...) ** epochs``, the exact answer for
an adversary who sees the batches that of ``RevealedSample(...) ** rounds``.
"""

from __future__ import annotations

import math
from typing import Any, Final

from hockeystick._validate import Domain, choice, count, real, whole_numbers
from hockeystick.accountants.closed_form import ClosedForm
from hockeystick.accountants.prv import PRV
from hockeystick.adjacency import Adjacency
from hockeystick.conversions.by_losses import root_up
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import Clipping, Gaussian
from hockeystick.notions import GDP, ApproxDP, PureDP
from hockeystick.numerics import decimal
from hockeystick.numerics.rounding import OUTWARD_128
from hockeystick.privacy_loss import DominatedLoss, GaussianLoss
from hockeystick.privacy_loss.local import LEAST_EPSILON, MOST_EPSILON
from hockeystick.privacy_loss.shuffling import BlanketLoss, StrongerClonesLoss, blanket_of
from hockeystick.results import Approximate, Certified, Quantity

OPEN_DELTA: Final = Domain("delta", 0, 1, (1e-12, 1e-4), low_open=True, high_open=True)
_EPSILON: Final = Domain(symbol="eps", low=0, high=math.inf, high_open=True, typical=(0.01, 20))
_NOISE: Final = Domain("z", 0, math.inf, (0.5, 10), low_open=True, high_open=True)
_LOCAL: Final = Domain(symbol="eps_0", low=LEAST_EPSILON, high=MOST_EPSILON, typical=(0.1, 8))
_MANY: Final = whole_numbers("n", 1, (100, 10**7))


def limit_epsilon(
    noise_multiplier: float, epochs: float, delta: float, side: int = 1
) -> Approximate:
    """Return epsilon by the published approximation for epochs over resampled or shuffled data.

    It is that of a Gaussian with ``mu = sqrt((1 + side/sqrt(2 E)) E) / noise_multiplier``: the
    spread ``sqrt(E/2)`` of the number of hits is taken once.

    Guarantees:
        None, on either side. To an adversary who sees the members of batches drawn afresh, epsilon
        at small delta is larger for few epochs than with ``side = 1``, and smaller for many; of
        shuffled epochs it is that of ``mu = sqrt(E)/noise_multiplier`` exactly.

    Args:
        noise_multiplier: Standard deviation of the noise over the largest change of a batch's sum,
            finite and positive; under replace-one, over twice the clipping norm.
        epochs: How often each example is used on average, at least 0.5 and finite.
        delta: Above 0 and below 1.
        side: 1 for the published upper bound, -1 for the lower one, 0 for their middle.

    van Dijk, Nguyen, Nguyen and Nguyen, "Generalizing DP-SGD with shuffling and batch
    clipping", 2022 (arXiv 2212.05796).

    Example:
        >>> from hockeystick.conversions.published.shuffling import limit_epsilon
        >>> print(limit_epsilon(3.0, epochs=10, delta=1e-5))
        epsilon ~ 5.23415 at delta = 1e-05 (approximation, no guarantee; shuffling-limit)
    """
    mu = _limiting_mu(noise_multiplier, epochs, side)
    return of_limit(mu, "epsilon", delta, "shuffling-limit")


def limit_delta(
    noise_multiplier: float, epochs: float, epsilon: float, side: int = 1
) -> Approximate:
    """Return delta, at a finite epsilon >= 0, by the approximation of ``limit_epsilon``.

    Example:
        >>> from hockeystick.conversions.published.shuffling import limit_delta
        >>> print(limit_delta(3.0, epochs=10, epsilon=5.0))
        delta ~ 0.0000233015 at epsilon = 5 (approximation, no guarantee; shuffling-limit)
    """
    mu = _limiting_mu(noise_multiplier, epochs, side)
    return of_limit(mu, "delta", epsilon, "shuffling-limit")


def shuffled_group(
    inner: Gaussian, epochs: int, size: int, clipping: Clipping | str = Clipping.INDIVIDUAL
) -> GDP:
    """Return what shuffled epochs cost a group of several examples: mu, rounded up.

    - Where a batch's sum is clipped as a whole, at most g of an epoch's batches change, each as for
      one example: ``mu = sqrt(g E) / z``, z being the noise multiplier;
    - where each example is clipped, j examples of the group in one batch change its sum j times as
      much, and they may all be in one: ``mu = g sqrt(E) / z``.

    ``sqrt(g E) / z`` is published, and is no bound for individual clipping; the account of
    ``Shuffled(...).for_group(g) ** E`` is one, and hardly larger for small groups.

    Guarantees:
        An upper bound: given which batch each example is in, both are compositions of Gaussians.

    Args:
        inner: The noise on a batch's sum, in units of the largest change that one example makes:
            twice the clipping norm where examples are replaced or a batch is clipped as a whole.
        epochs: Passes over the data, an integer from 0 to 10^15.
        size: Examples in the group, an integer from 1 to 10^15.
        clipping: "individual" or "batch".

    van Dijk, Nguyen, Nguyen and Nguyen 2022 (arXiv 2212.05796).

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.conversions.published.shuffling import shuffled_group
        >>> print(shuffled_group(hs.Gaussian(4.0), epochs=4, size=9, clipping="batch"))
        1.5-GDP release
    """
    runs = count("epochs", epochs, whole_numbers("E", 0, (1, 500)))
    group = count("size", size, whole_numbers("g", 1, (1, 100)))
    whole = choice("clipping", clipping, Clipping) is Clipping.BATCH
    noise = inner.noise_multiplier
    if runs == 0 or noise == math.inf:
        return GDP(0.0)
    if noise == 0.0:
        return GDP(math.inf)
    return GDP(root_up((group if whole else group * group) * runs / decimal(noise) ** 2))


def _limiting_mu(noise_multiplier: float, epochs: float, side: int) -> float:
    noise = real("noise_multiplier", noise_multiplier, _NOISE)
    passes = real("epochs", epochs, Domain("E", 0.5, math.inf, (1, 500), high_open=True))
    way = count("side", side, Domain("s", -1, 1, (-1, 1), whole=True))
    return math.sqrt(max(passes + way * math.sqrt(0.5 * passes), 0.0)) / noise


def of_limit(
    mu: float, quantity: Quantity, at: float, accountant: str, **about: Any
) -> Approximate:
    """Return epsilon or delta of ``G_mu`` as what a limit theorem says: an approximation."""
    if quantity == "epsilon":
        given, value = real("delta", at, OPEN_DELTA), mu
    else:
        given, value = real("epsilon", at, _EPSILON), min(mu, 1.0)
    if 0.0 < mu < math.inf:
        ask = ClosedForm().epsilon_of if quantity == "epsilon" else ClosedForm().delta_of
        value = ask(((GaussianLoss(1.0 / mu), 1),), given).estimate
    return Approximate(value, quantity=quantity, accountant=accountant, at=given, **about)


def clones_epsilon(randomizer_epsilon: float, users: int, delta: float) -> Certified:
    """Return epsilon of the stronger clones' pair itself, which dominates all shuffled reports.

    With ``tau = tanh(epsilon_0/2)``, ``T = 1 + Bin(n - 1, 1 - tau)`` and S the sum of T fair signs,
    the pair has ``delta(epsilon) = (1 + e^epsilon) E[(tau S/T - tanh(epsilon/2))_+]``.

    Guarantees:
        Both ends are proven for the pair, the upper one for every epsilon_0-DP randomizer and all
        data, as that of ``ShuffledReports``; particular randomizers need not reach the lower one.
        Epsilon is 0 where delta is at least the total variation of the pair.

    Args:
        randomizer_epsilon: epsilon_0, from 10^-6 to 20.
        users: The number n of users, an integer from 2 to 10^9.
        delta: Above 0 and below 1.

    Feldman, McMillan and Talwar 2023 (arXiv 2208.04591).

    Example:
        >>> from hockeystick.conversions.published.shuffling import clones_epsilon
        >>> found = clones_epsilon(4.0, users=100_000, delta=1e-6)
        >>> print(f"between {found.lower:.4f} and {found.upper:.4f}")
        between 0.1182 and 0.1182
    """
    at = real("delta", delta, OPEN_DELTA)
    return _certified(randomizer_epsilon, users, "epsilon", at)


def clones_delta(randomizer_epsilon: float, users: int, epsilon: float) -> Certified:
    """Return delta of the stronger clones' pair itself, as ``clones_epsilon`` does epsilon.

    It is asked at an epsilon in [0, inf]; from epsilon_0 on, delta is 0.

    Example:
        >>> from hockeystick.conversions.published.shuffling import clones_delta
        >>> print(f"{clones_delta(1.0, users=200, epsilon=0.4).upper:.8g}")
        9.7242811e-08
    """
    at = real("epsilon", epsilon)
    return _certified(randomizer_epsilon, users, "delta", at)


def _certified(local: float, users: int, quantity: Quantity, at: float) -> Certified:
    own = real("randomizer_epsilon", local, _LOCAL)
    size = count("users", users, Domain("n", 2, 10**9, (100, 10**7), whole=True))
    above = BlanketLoss(blanket_of(PureDP(own), own, 1.0), own, size)
    ask = PRV().epsilon_of if quantity == "epsilon" else PRV().delta_of
    return Certified(
        *ask(((DominatedLoss(above, StrongerClonesLoss(own, 2, size)), 1),), at).ordered(),
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
        An upper bound under replace-one, rounded up and at most epsilon_0, for every epsilon_0-DP
        randomizer, where ``n >= 16 e^epsilon_0 ln(4/delta)``, as its authors' code has it; the
        theorem asks for ``ln(2/delta)``.

    Args:
        randomizer_epsilon: epsilon_0, in [0, 300].
        users: The number n of users, an integer from 1 to 10^15.
        delta: Above 0 and below 1.

    Feldman, McMillan and Talwar, "Hiding Among the Clones: A Simple and Nearly Optimal Analysis
    of Privacy Amplification by Shuffling", FOCS 2021 (arXiv 2012.12803), theorem III.1.

    Example:
        >>> from hockeystick.conversions.published.shuffling import hiding_among_clones
        >>> print(hiding_among_clones(4.0, users=100_000, delta=1e-6).epsilon)
        0.53463399165...
    """
    own, size, at = _checked(randomizer_epsilon, users, delta)
    odds, log = math.exp(own), math.log(4.0) - math.log(at)
    _enough(size, 16.0 * odds * log)
    return _guarantee(own, 8.0 * math.sqrt(odds * log / size) + 8.0 * odds / size, at)


def stronger_clones_bound(randomizer_epsilon: float, users: int, delta: float) -> ApproxDP:
    """Return a guarantee of shuffled reports in closed form, from the stronger clones.

    With ``m = (n - 1) / (e^epsilon_0 + 1)``, half of the mean number C of clones,

        ln(1 + tanh(epsilon_0/2) (sqrt(32 ln(2/delta) / m) + 4/m)),    m >= 8 ln(2/delta).

    The loss is ``ln(1 + 2 tau s / (t - tau s))`` where the t = C + 1 reports of clones and victim
    differ by s between the two kinds. By Chernoff's bound C < m has probability at most
    ``e^(-m/4) <= delta/2``, and by Hoeffding's ``s > 1 + sqrt(2 C ln(2/delta))`` as much.
    Elsewhere ``s <= 1 + C/2``, so that ``t - tau s >= C/2``, and the bound decreases in C.

    Guarantees, arguments and errors are those of ``hiding_among_clones``, under this condition.

    Feldman, McMillan and Talwar 2023 (arXiv 2208.04591) have the pair, the proof the constants.

    Example:
        >>> from hockeystick.conversions.published.shuffling import stronger_clones_bound
        >>> print(f"{stronger_clones_bound(4.0, users=100_000, delta=1e-6).epsilon:.6f}")
        0.400074
    """
    own, size, at = _checked(randomizer_epsilon, users, delta)
    odds, log = math.exp(own), math.log(2.0) - math.log(at)
    _enough(size, 1.0 + 8.0 * (odds + 1.0) * log)
    half = (size - 1) / (odds + 1.0)
    return _guarantee(own, math.sqrt(32.0 * log / half) + 4.0 / half, at)


def _checked(local: float, users: int, delta: float) -> tuple[float, int, float]:
    return (
        real("randomizer_epsilon", local, Domain("eps_0", 0, 300, (0.1, 8))),
        count("users", users, _MANY),
        real("delta", delta, OPEN_DELTA),
    )


def _enough(users: int, least: float) -> None:
    """Raise where there are fewer users than a bound is proven for."""
    if users < least * (1.0 + OUTWARD_128):
        allowed = f"at least {math.ceil(least):,} for this bound to hold; use ShuffledReports"
        raise ParameterError("users", users, allowed)


def _guarantee(local: float, size: float, delta: float) -> ApproxDP:
    """Return ``ln(1 + tau size)``, rounded up, at most the randomizer's epsilon."""
    value = math.log1p(math.tanh(0.5 * local) * size) * (1.0 + OUTWARD_128)
    return ApproxDP(min(value, local), delta)
