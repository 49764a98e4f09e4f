"""One budget for several releases: split among queries, or met by a common factor of all noise."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias, final

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.calibration.budgets.gaussian import gaussian_noise
from hockeystick.conversions.convert import convert
from hockeystick.errors import IncompatibleError, ParameterError, UnsupportedError
from hockeystick.mechanisms import DPSGD, Composed, Gaussian, Laplace, Mechanism, Repeated
from hockeystick.mechanisms.base import checked
from hockeystick.notions import GDP, ZCDP, ApproxDP, PureDP
from hockeystick.numerics.roots import increasing_root

Budget: TypeAlias = ApproxDP | GDP | PureDP | ZCDP

_PARTS: Final = Domain(symbol="k", low=1, high=10**6, typical=(2, 100), whole=True)
_RUNS: Final = whole_numbers("k", 1, (2, 1000))
_WEIGHT: Final = Domain("w", 0, math.inf, (0.1, 10), low_open=True, high_open=True)
_A_BUDGET: Final = (
    "a finite budget above 0: an ApproxDP with a delta in (0, 1), GDP, ZCDP or PureDP"
)
_TOLERANCE: Final = 1e-10
# A share that is next to nothing beside the others is not less than this.
_LEAST_SHARE: Final = 1e-300
# Noise is searched for within a factor of exp of this.
_LARGEST_LOG_FACTOR: Final = 60.0


class SplitBy(StrEnum):
    """What the weights are: shares of what adds up, or factors of variances in a least sum."""

    COST = "cost"
    LEAST_NOISE = "least-noise"


@final
@dataclass(frozen=True, slots=True)
class BudgetSplit:
    """Releases that together keep to a budget.

    Args:
        releases: The mechanisms, in the order of the weights.
        achieved: What is proven of all of them together, in the notion of the budget.
        plan: Their composition.
    """

    releases: tuple[Mechanism, ...]
    achieved: Budget
    plan: Mechanism


def split_budget(
    budget: Budget,
    *,
    parts: int | None = None,
    weights: Iterable[float] | None = None,
    by: SplitBy | str = SplitBy.COST,
) -> BudgetSplit:
    """Return releases with noise that together keep to a budget, split by weights.

    The releases are Gaussians, and for pure differential privacy Laplace noise, each in units of
    its own query's sensitivity. What adds up is ``1/sigma^2``, for Laplace noise ``1/b``; release i
    has a share ``s_i`` of it, ``sum s_i = 1``:

    - by cost: ``s_i = w_i / sum w``; equal parts where all weights are.
    - by least noise: ``sum w_i sigma_i^2`` is least where ``s_i`` is in proportion to
      ``w_i^(1/2)``; for Laplace noise, whose variance is ``2 b^2``, to ``w_i^(1/3)``.

    Guarantees:
        ``achieved`` is proven of the composition and at most the budget. For ApproxDP the Gaussians
        are accounted together, exactly, so that the budget is met to some units in the last place.

    Args:
        budget: ``ApproxDP`` with a delta in (0, 1), ``GDP``, ``ZCDP`` or ``PureDP``, finite and
            above 0.
        parts: How many releases share it alike, an integer from 1 to 10^6; or
        weights: one positive weight for each: exactly one of the two.
        by: "cost" or "least-noise".

    Example:
        >>> import hockeystick as hs
        >>> split = hs.calibration.split_budget(hs.GDP(1.0), weights=[1, 4], by="least-noise")
        >>> [round(release.noise_multiplier**2, 9) for release in split.releases]
        [3.0, 1.5]
        >>> split.achieved.mu <= 1
        True
    """
    _check(budget)
    rule = _validate.choice("by", by, SplitBy)
    given = _weights(parts, weights)
    least = 1.0 / 3.0 if isinstance(budget, PureDP) else 0.5
    power = least if rule is SplitBy.LEAST_NOISE else 1.0
    largest = math.log(max(given))
    sizes = [math.exp(power * (math.log(weight) - largest)) for weight in given]
    total = math.fsum(sizes)
    noises = _noises(budget, [max(size / total, _LEAST_SHARE) for size in sizes])
    slack = 2.0**-52
    while True:
        split = _split(budget, [noise * (1.0 + slack) for noise in noises])
        if _spent(split.achieved) <= _spent(budget):
            return split
        slack *= 2.0


def share_budget(budget: Budget, parts: Iterable[Mechanism]) -> BudgetSplit:
    """Return mechanisms, all noise multiplied by one common factor, that together keep to a budget.

    The factor is the least for which the composition is proven to keep to it; what the parts have
    of noise next to each other stays as it is. With one plan that has a schedule, it is the
    schedule's overall factor: ``noise_multiplier`` times the schedule's factors is each step's.

    Guarantees:
        ``achieved`` is proven of the composition and at most the budget, which is met to about
        one part in 10^9.

    Args:
        budget: ``ApproxDP`` with a delta in (0, 1), ``GDP``, ``ZCDP`` or ``PureDP``, finite and
            above 0.
        parts: The mechanisms, with positive finite noise: ``Gaussian``, ``Laplace``, ``DPSGD``, and
            what samples, repeats, composes or tunes these.

    Raises:
        IncompatibleError: If a part has no noise to multiply, or no factor that is tried keeps to
            the budget: Gaussian noise never to a pure one.

    Example:
        >>> import hockeystick as hs
        >>> runs = [hs.DPSGD(noise_multiplier=z, rate=0.01, steps=1000) for z in (1.0, 2.0)]
        >>> split = hs.calibration.share_budget(hs.ApproxDP(2.0, 1e-6), runs)
        >>> print([f"{run.noise_multiplier:.4f}" for run in split.releases])
        ['1.0625', '2.1250']
        >>> print(f"{split.achieved.epsilon:.8f}")
        2.00000000
    """
    _check(budget)
    if not _validate.has_several(parts):
        raise ParameterError("parts", parts, "one or more mechanisms, in a tuple")
    listed = [checked(f"parts[{index}]", part) for index, part in enumerate(parts)]
    return _scaled_to(budget, Composed(listed), *listed)


def grid_search(budget: Budget, run: Mechanism, runs: int) -> BudgetSplit:
    """Return the run of which that number, with all results released, keep to a budget.

    A search over a fixed list of k candidates costs what k runs cost together, ``run ** k``, even
    where only the best is kept: unlike a random number of runs (``RandomStopping``).

    Args:
        budget: As for ``share_budget``, as are guarantees and errors.
        run: One run, whose noise is multiplied.
        runs: The number k of runs, an integer from 1 to 10^15.

    Returns:
        ``releases`` holds the one run that all are like, ``plan`` all of them.

    Example:
        >>> import hockeystick as hs
        >>> run = hs.DPSGD(noise_multiplier=1.0, rate=0.01, steps=1000)
        >>> for runs in (1, 10):
        ...     (one,) = hs.calibration.grid_search(hs.ApproxDP(2.0, 1e-6), run, runs).releases
        ...     print(f"{one.noise_multiplier:.4f}")
        1.0290
        2.3556
    """
    _check(budget)
    plan = Repeated(checked("run", run), _validate.count("runs", runs, _RUNS))
    return _scaled_to(budget, plan, run)


def _scaled_to(budget: Budget, plan: Mechanism, *parts: Mechanism) -> BudgetSplit:
    factor = _fitting(budget, plan)
    found = with_noise(plan, factor)
    releases = tuple(with_noise(one, factor) for one in parts)
    return BudgetSplit(releases, _achieved(found, budget), found)


def with_noise(mechanism: Mechanism, factor: float) -> Mechanism:
    """Return a mechanism with all its noise multiplied by a factor."""
    if isinstance(mechanism, Gaussian):
        return Gaussian(factor * mechanism.noise_multiplier)
    if isinstance(mechanism, Laplace):
        return Laplace(factor * mechanism.scale)
    if isinstance(mechanism, DPSGD):
        noise = factor * mechanism.noise_multiplier
        extra = None if mechanism.extra is None else with_noise(mechanism.extra, factor)
        return dataclasses.replace(mechanism, noise_multiplier=noise, extra=extra)
    if isinstance(mechanism, Composed):
        return Composed(with_noise(part, factor) for part in mechanism.parts)
    holder: Any = mechanism
    if isinstance(getattr(holder, "inner", None), Mechanism):
        found: Mechanism = dataclasses.replace(holder, inner=with_noise(holder.inner, factor))
        return found
    raise IncompatibleError(
        f"{mechanism} has no noise of which a multiple would be meant; calibrate one of its "
        "parameters by name instead"
    )


def _fitting(budget: Budget, plan: Mechanism) -> float:
    """Return the least factor found of a plan's noise for which it keeps to a budget."""
    allowed = _spent(budget)
    # What cannot be accounted whatever the noise is refused here, with the reason.
    _achieved(with_noise(plan, 1.0), budget)

    def excess(log_factor: float) -> float:
        try:
            spent = _spent(_achieved(with_noise(plan, math.exp(log_factor)), budget))
        except (IncompatibleError, UnsupportedError):
            return -math.inf
        return math.log(allowed / spent) if spent > 0.0 else math.inf

    log_factor = increasing_root(excess, 0.0, tolerance=_TOLERANCE, farthest=_LARGEST_LOG_FACTOR)
    slack = _TOLERANCE
    while excess(log_factor) < 0.0:
        if log_factor > _LARGEST_LOG_FACTOR:
            raise IncompatibleError(f"no factor of the noise of {plan} keeps it to {budget}")
        log_factor, slack = log_factor + slack, 2.0 * slack
    return math.exp(log_factor)


def _split(budget: Budget, noises: list[float]) -> BudgetSplit:
    kind = Laplace if isinstance(budget, PureDP) else Gaussian
    releases = tuple(kind(noise) for noise in noises)
    alike = len(set(releases)) == 1
    plan = Repeated(releases[0], len(releases)) if alike else Composed(releases)
    return BudgetSplit(releases, _achieved(plan, budget), plan)


def _achieved(plan: Mechanism, budget: Budget) -> Budget:
    if isinstance(budget, ApproxDP):
        return convert(plan, ApproxDP, delta=budget.delta)
    return convert(plan, type(budget))


def _weights(parts: int | None, weights: Iterable[float] | None) -> tuple[float, ...]:
    if (parts is None) == (weights is None):
        raise ParameterError("parts, weights", (parts, weights), "given one without the other")
    if weights is None:
        return (1.0,) * _validate.count("parts", parts, _PARTS)
    return _validate.reals("weights", weights, _WEIGHT)


def _spent(budget: object) -> float:
    if isinstance(budget, ApproxDP | PureDP):
        return budget.epsilon
    if isinstance(budget, GDP):
        return budget.mu
    if isinstance(budget, ZCDP):
        return budget.rho
    raise ParameterError("budget", budget, _A_BUDGET)


def _check(budget: Budget) -> None:
    within = not isinstance(budget, ApproxDP) or 0.0 < budget.delta < 1.0
    if not (0.0 < _spent(budget) < math.inf and within):
        raise ParameterError("budget", budget, _A_BUDGET)


def _noises(budget: Budget, shares: list[float]) -> list[float]:
    if isinstance(budget, GDP):
        return [1.0 / budget.mu / math.sqrt(share) for share in shares]
    if isinstance(budget, ZCDP):
        return [math.sqrt(0.5 / share) / math.sqrt(budget.rho) for share in shares]
    if isinstance(budget, PureDP):
        return [1.0 / share / budget.epsilon for share in shares]
    all_together = gaussian_noise(budget.epsilon, budget.delta)
    return [all_together / math.sqrt(share) for share in shares]
