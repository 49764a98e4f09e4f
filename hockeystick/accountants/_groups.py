"""What noise on a query costs a group of records: the query moves as many times as far."""

from __future__ import annotations

from functools import singledispatch

from hockeystick._validate import MAX_COUNT
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    MatrixFactorization,
    Mechanism,
    MultivariateLaplace,
    Plan,
    Repeated,
    SinhNormal,
    Skellam,
    TreeAggregation,
    TruncatedPoissonSubsampled,
)
from hockeystick.notions import GDP, TCDP, ZCDP
from hockeystick.numerics.rounding import product_up, quotient_down


@singledispatch
def for_group(mechanism: Mechanism, size: int) -> Mechanism | None:
    """Return a mechanism that costs one record what this one costs a group, None if none is known.

    Neighbours of the result move the query ``size`` times as far as those of the mechanism. No
    ``size`` records move it further (the triangle inequality), and some move it as far: those that
    all move it in one direction. Scales are rounded to the side of less privacy.

    Raises:
        IncompatibleError: If what is known of one record says nothing of several.
    """
    return None


@for_group.register
def _(mechanism: Gaussian, size: int) -> Mechanism:
    return Gaussian(quotient_down(mechanism.noise_multiplier, size))


@for_group.register
def _(mechanism: Laplace, size: int) -> Mechanism:
    return Laplace(quotient_down(mechanism.scale, size))


@for_group.register
def _(mechanism: MultivariateLaplace, size: int) -> Mechanism:
    return MultivariateLaplace(quotient_down(mechanism.scale, size), mechanism.dimension)


@for_group.register
def _(mechanism: SinhNormal, size: int) -> Mechanism | None:
    rho, width = product_up(size * size, mechanism.rho), quotient_down(mechanism.width, size)
    try:
        return SinhNormal(rho, width)
    except ParameterError:
        # Next to the least width, rounding may lead out of the domain.
        return None


@for_group.register
def _(mechanism: DiscreteGaussian, size: int) -> Mechanism | None:
    moved = mechanism.sensitivity * size
    return DiscreteGaussian(mechanism.sigma, moved) if moved <= MAX_COUNT else None


@for_group.register
def _(mechanism: DiscreteLaplace, size: int) -> Mechanism | None:
    moved = mechanism.sensitivity * size
    return DiscreteLaplace(mechanism.scale, moved) if moved <= MAX_COUNT else None


@for_group.register
def _(mechanism: Skellam, size: int) -> Mechanism | None:
    moved = mechanism.sensitivity * size
    return Skellam(mechanism.variance, moved) if moved <= MAX_COUNT else None


@for_group.register
def _(mechanism: TreeAggregation, size: int) -> Mechanism:
    return TreeAggregation(quotient_down(mechanism.noise_multiplier, size), mechanism.leaves)


@for_group.register
def _(mechanism: MatrixFactorization, size: int) -> Mechanism:
    noise = quotient_down(mechanism.noise_multiplier, size)
    return MatrixFactorization(noise, mechanism.encoder)


@for_group.register
def _(mechanism: GDP, size: int) -> Mechanism:
    return mechanism.group(size)


@for_group.register
def _(mechanism: ZCDP, size: int) -> Mechanism:
    # The Gaussian mechanism has the largest divergences allowed, for groups too.
    return mechanism.group(size)


@for_group.register
def _(mechanism: TCDP, size: int) -> Mechanism | None:
    try:
        return mechanism.group(size)
    except IncompatibleError:
        # Order by order nothing is left; the trade-off function still says something.
        return None


@for_group.register
def _(mechanism: TruncatedPoissonSubsampled, size: int) -> Mechanism | None:
    # The second of two records that go leaves a data set of another size than the stated one,
    # from which a cap keeps each record more often: one record's curve does not say what it costs.
    if size > 1 and mechanism.cap < mechanism.examples:
        raise IncompatibleError(
            f"a {mechanism} has no analysis for groups: its guarantee is for data sets of exactly "
            f"{mechanism.examples:,} examples and one less; leave the cap out"
        )
    return None


@for_group.register
def _(mechanism: Plan, size: int) -> Mechanism | None:
    return for_group(mechanism.mechanism, size)


@for_group.register
def _(mechanism: Repeated, size: int) -> Mechanism | None:
    once = for_group(mechanism.inner, size)
    return None if once is None else once**mechanism.count


@for_group.register
def _(mechanism: Composed, size: int) -> Mechanism | None:
    parts = [part for one in mechanism.parts if (part := for_group(one, size)) is not None]
    return Composed(parts) if len(parts) == len(mechanism.parts) else None
