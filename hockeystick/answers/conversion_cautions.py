"""What a converted guarantee does not say by itself, and whoever quotes it should know."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from typing import Final

from hockeystick.accountants.comparison import LEAST_RATE
from hockeystick.answers.cautions import Caution, cautions_at, cautions_of_plan
from hockeystick.conversions import convert
from hockeystick.errors import IncompatibleError, UnsupportedError
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.numerics.numerals import at_most, plain

_ORDER: Final = 2.0
# How many times the plan's own divergence a guarantee must allow to be called far above it.
_FAR: Final = 2.0
_RARE: Final = "a rare loss counts as if it were sure, and sampling saves little"
_INSTEAD: Final = (
    "For what it costs at the orders that matter, ask for ApproxDP at a delta, RenyiDP at some "
    "orders or TCDP up to a small omega."
)
_TWO_MUS: Final = (
    f"The mu of reports is another one, which holds at error rates from {plain(LEAST_RATE)} on: "
    "`hockeystick epsilon --mu`, in Python hs.accountants.gaussian_summary."
)


def conversion_cautions(
    found: Notion, x: Mechanism, lower: tuple[float, ...] = ()
) -> tuple[Caution, ...]:
    """Return what whoever quotes a converted guarantee should know besides.

    One number for all orders, or for all error rates, is as large as the largest orders need, at
    which sampling saves little: DP-SGD of epsilon 2.4 at delta 1e-5 may have a rho of 5,800. It is
    said where the guarantee provably allows more than twice the plan's own divergence of order 2.

    Guarantees:
        None: these are conventions, not theorems. The numbers in the texts are rounded up.

    Args:
        found: What ``convert`` made of x.
        x: A notion, a mechanism or a plan.
        lower: What ``conversions.lower_ends`` says of it. Without, nothing is said of the size of
            what is not exact.

    Returns:
        The cautions, the most serious first.

    Example:
        >>> import hockeystick as hs
        >>> plan = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.01) ** 1000
        >>> found = hs.convert(plan, hs.ZCDP)
        >>> lower = hs.conversions.lower_ends(plan, found)
        >>> (one,) = hs.answers.conversion_cautions(found, plan, lower)
        >>> print(one.text)  # doctest: +NORMALIZE_WHITESPACE +ELLIPSIS
        rho bounds the divergences of all orders, and the largest decide: there a rare loss counts
        as if it were sure, and sampling saves little. At order 2 it allows 826.447, and the plan
        costs 0.128... For what it costs at the orders that matter, ask for ApproxDP at a delta,
        RenyiDP at some orders or TCDP up to a small omega.
    """
    if isinstance(found, ApproxDP):
        return cautions_at(x, epsilon=found.epsilon, delta=found.delta)
    if isinstance(found, PureDP):
        return cautions_at(x, epsilon=found.epsilon, delta=0.0)
    of_size = () if isinstance(x, Notion) else tuple(_of_size(found, x, lower))
    return (*of_size, *cautions_of_plan(x))


@singledispatch
def _of_size(found: Notion, plan: Mechanism, lower: tuple[float, ...]) -> Iterator[Caution]:
    """Yield the caution where a guarantee of all orders is far above the plan's at order 2."""
    yield from ()


@_of_size.register(ZCDP)
@_of_size.register(TCDP)
def _(found: ZCDP | TCDP, plan: Mechanism, lower: tuple[float, ...]) -> Iterator[Caution]:
    omega = found.omega if isinstance(found, TCDP) else None
    if (cost := _far_below(_least(found, found.rho, lower), plan)) is not None:
        orders = "of all orders" if omega is None else f"of orders up to {plain(omega)}"
        yield Caution(
            "rho",
            f"rho bounds the divergences {orders}, and the largest decide: there {_RARE}. At order "
            f"2 it allows {at_most(_ORDER * found.rho)}, and the plan costs {cost}. {_INSTEAD}",
        )


@_of_size.register
def _(found: GDP, plan: Mechanism, lower: tuple[float, ...]) -> Iterator[Caution]:
    if found.origin is None or found.origin.kind == "exact":
        return
    text = "mu is proven for every release with losses as large; a smaller one may hold."
    mu = _least(found, found.mu, lower)
    if (cost := _far_below(0.5 * mu * mu, plan)) is not None:
        text = (
            f"mu holds at all error rates, however small: there {_RARE}. At order 2 it allows a "
            f"divergence of {at_most(found.mu * found.mu)}, and the plan costs {cost}."
        )
    yield Caution("mu", f"{text} {_TWO_MUS}")


@_of_size.register
def _(found: RenyiDP, plan: Mechanism, lower: tuple[float, ...]) -> Iterator[Caution]:
    order, size = found.divergences[-1]
    least = _least(found, size, lower[-1:])
    if order > _ORDER and (cost := _far_below(least / order, plan)) is not None:
        yield Caution(
            "divergences",
            f"at order {plain(order)} {_RARE}: that divergence is {at_most(size)}, and that of "
            f"order 2 is {cost}. ApproxDP at a delta takes the best of all orders.",
        )


def _least(found: Notion, upper: float, lower: tuple[float, ...]) -> float:
    """Return what is proven to be needed: the number itself where it is exact."""
    if found.origin is not None and found.origin.kind == "exact":
        return upper
    return lower[0] if lower else 0.0


def _far_below(slope: float, plan: Mechanism) -> str | None:
    """Return the plan's divergence of order 2, where a line of that slope is far above it."""
    if slope == 0.0:
        return None
    try:
        ((_, cost),) = convert(plan, RenyiDP, orders=_ORDER).divergences
    except (IncompatibleError, UnsupportedError):
        return None
    return at_most(cost) if slope * _ORDER > _FAR * cost else None
