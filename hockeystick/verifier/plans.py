"""From the description of a plan to the losses of its runs, by the theorem that each names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import repeat
from typing import Any, Final, NamedTuple

from flint import arb

from .balls import Ball, NotCovered, ball, normal_tail
from .fields import (
    AnswerError,
    Fields,
    among,
    exact,
    field,
    finite,
    integer,
    limited,
    number,
    positive,
)
from .moments import AtomicLoss, DensityLoss, GaussianLoss, SampledGaussian, SampledLaplace

MOST_SCHEDULED: Final = 1_000_000
MOST_SENSITIVE: Final = 1000


class Run(NamedTuple):
    """The losses of one run in both directions, the mass that fails, and what is attained.

    Where no release is known to attain the losses, ``attained`` are those of one release.
    """

    losses: tuple[Any, Any]
    failure: Fraction = Fraction(0)
    attained: tuple[Any, Any] | None = None


def alike(loss: Any, failure: Fraction = Fraction(0)) -> Run:
    """Return a run with the same losses in both directions."""
    return Run((loss, loss), failure)


def lattice(masses: Mapping[Fraction, Ball], span: Fraction) -> AtomicLoss:
    """Return the losses of a mapping from loss to P-mass."""
    atoms = [(mass, ball(loss)) for loss, mass in masses.items()]
    return AtomicLoss(atoms, span, min(masses), max(masses))


def randomized_response(
    epsilon: Fraction, categories: int, works: Fraction = Fraction(1)
) -> AtomicLoss:
    """Return the losses of the true answer, of the neighbour's, and of the rest.

    Two categories dominate (epsilon, delta)-DP (Kairouz, Oh and Viswanath 2017, theorem 3.3).
    """
    power = ball(epsilon).exp()
    share = ball(works) / (power + categories - 1)
    rest = {Fraction(0): share * (categories - 2)} if categories > 2 else {}
    return lattice({epsilon: share * power, -epsilon: share, **rest}, epsilon * (1 if rest else 2))


def discrete_laplace(scale: Fraction, shift: int) -> AtomicLoss:
    """Return the losses of ``t^|y - shift|`` against ``t^|y|``, for ``t = e^{-1/scale}``."""
    t = (-1 / ball(scale)).exp()
    inner = {
        j: t ** (shift - j) * (1 - t if 0 < j < shift else 1) / (1 + t) for j in range(shift + 1)
    }
    return lattice({(2 * j - shift) / scale: mass for j, mass in inner.items()}, 2 / scale)


def discrete_gaussian(sigma: Fraction, shift: int) -> AtomicLoss:
    """Return the losses ``shift (2k + shift) / 2 sigma^2`` of ``P(k) ~ e^{-k^2 / 2 sigma^2}``.

    ``P(k) e^{cL}`` is proportional to ``e^{-(k - c shift)^2 / 2 sigma^2}``; over all k that are r
    or more from ``c shift`` it adds up to at most ``2 (1 + sigma^2/r) e^{-r^2 / 2 sigma^2}``.
    """
    width, s2 = math.ceil(30 * float(sigma)) + 3 * shift, ball(sigma) ** 2
    tail = 2 * (1 + s2 / width) * (-(arb(width) ** 2) / (2 * s2)).exp()
    masses = {k: (-(arb(k) ** 2) / (2 * s2)).exp() for k in range(-width, width + 1)}
    total = sum(masses.values(), arb(0, tail.upper()))

    def rest(c: Ball) -> Ball:
        r = width - abs(c * shift)
        if not r > 1:
            return arb("inf")
        return (
            (c * (c + 1) * shift**2 / (2 * s2) - r**2 / (2 * s2)).exp() * 2 * (1 + s2 / r) / total
        )

    whole = lattice(
        {shift * (2 * k + shift) / (2 * sigma**2): mass / total for k, mass in masses.items()},
        shift / sigma**2,
    )
    return AtomicLoss(whole.atoms, whole.span, whole.least, None, rest)


def sampled_laplace(scale: Fraction, rate: Fraction, way: str) -> DensityLoss:
    """Return the losses of ``(1-q) Lap(0, b) + q Lap(1, b)`` against ``Lap(0, b)``, or reversed."""
    q, b, half = ball(rate), ball(scale), arb(1) / 2
    ends = [(half, 1 - q + q * (-1 / b).exp()), (half * (-1 / b).exp(), 1 - q + q * (1 / b).exp())]
    atoms = [(mass * w, w.log()) if way == "remove" else (mass, -w.log()) for mass, w in ends]
    return DensityLoss([SampledLaplace(rate, scale, way)], atoms, scale if rate == 1 else None)


def sampled_atoms(loss: AtomicLoss, rate: Fraction, way: str) -> AtomicLoss:
    """Return the losses of a Poisson sample of a symmetric pair."""
    q = ball(rate)
    if way == "add":
        return AtomicLoss(
            [(mass, -(1 - q + q * (-level).exp()).log()) for mass, level in loss.atoms]
        )
    return AtomicLoss(
        [
            (mass * (-level).exp() * (1 - q + q * level.exp()), (1 - q + q * level.exp()).log())
            for mass, level in loss.atoms
        ]
    )


def sampled(rate: Fraction, noise: Fraction, way: str) -> DensityLoss:
    """Return the losses of a Poisson sample with Gaussian noise."""
    return DensityLoss([SampledGaussian(rate, noise, way)])


def both(rate: Fraction, noise: Fraction) -> tuple[DensityLoss, DensityLoss]:
    """Return the same when an example is removed, and when it is added."""
    return sampled(rate, noise, "remove"), sampled(rate, noise, "add")


def mirrored(rate: Fraction, noise: Fraction) -> DensityLoss:
    """Return the losses of ``C_q(G_mu)`` (Dong, Roth and Su 2022, theorem 4.2).

    They are those of "remove" above 0, the same mirrored, and 0 for the rest of the mass.
    """
    start, q = 1 / (2 * ball(noise)), ball(rate)
    outside = normal_tail(start)
    atom = (1 - q) * (1 - 2 * outside)
    return DensityLoss(
        [SampledGaussian(rate, noise, way, start) for way in ("remove", "add")], [(atom, arb(0))]
    )


def run_of(description: Fields) -> Run | None:
    """Return what one run of a mechanism loses; None where that is nothing."""
    kind = field(description, "type", str)
    sizes = {
        "Gaussian": "noise_multiplier",
        "GDP": "mu",
        "Laplace": "scale",
        "DiscreteLaplace": "scale",
        "DiscreteGaussian": "sigma",
    }
    if kind in sizes:
        size = number(description, sizes[kind])
        if size == (0 if kind == "GDP" else math.inf):
            return None
        size = positive(size)
        if kind in ("Gaussian", "GDP"):
            return alike(GaussianLoss(size if kind == "GDP" else 1 / size))
        if kind == "Laplace":
            return alike(sampled_laplace(size, Fraction(1), "remove"))
        make = discrete_laplace if kind == "DiscreteLaplace" else discrete_gaussian
        sensitivity = limited("sensitivity", field(description, "sensitivity", int), 1, math.inf)
        if sensitivity > MOST_SENSITIVE:
            raise NotCovered(f"sensitivities above {MOST_SENSITIVE:,} are not verified")
        return alike(make(size, sensitivity))
    if kind in ("PureDP", "ApproxDP", "RandomizedResponse"):
        epsilon = finite(number(description, "epsilon"))
        failure = finite(number(description, "delta")) if kind == "ApproxDP" else Fraction(0)
        categories = field(description, "categories", int) if kind == "RandomizedResponse" else 2
        limited("delta", failure, Fraction(0), Fraction(1))
        limited("categories", categories, 2, math.inf)
        if not epsilon:
            none = AtomicLoss([(ball(1 - failure), arb(0))], Fraction(0), largest=Fraction(0))
            return alike(none, failure) if failure else None
        return alike(randomized_response(epsilon, categories, 1 - failure), failure)
    if kind == "PoissonSubsampled":
        return poisson(description)
    if kind == "FixedSizeSubsampled":
        return fixed_size(description)
    raise NotCovered(f"{kind} is not among the mechanisms that are verified")


def poisson(description: Fields) -> Run | None:
    """Return what a Poisson sample loses: ``(1-q) Q + q P`` against Q, or the reverse.

    To replace one, with Gaussian noise: ``(1-q) N(0) + q N(1)`` against ``(1-q) N(0) + q N(-1)``.
    """
    inner, rate = field(description, "inner", dict), finite(number(description, "rate"))
    limited("rate", rate, 0, 1)
    replace, kind = among(description, "adjacency") == "replace-one", field(inner, "type", str)
    whole = run_of(inner)
    if whole is None or not rate:
        return None
    if kind == "Gaussian":
        noise = positive(number(inner, "noise_multiplier"))
        if rate == 1:
            return alike(GaussianLoss((2 if replace else 1) / noise))
        return alike(sampled(rate, noise, "replace")) if replace else Run(both(rate, noise))
    if rate == 1 and not replace and whole.attained is None:
        return whole
    if kind == "Laplace" and not replace:
        scale = positive(number(inner, "scale"))
        return Run((sampled_laplace(scale, rate, "remove"), sampled_laplace(scale, rate, "add")))
    if kind in ("RandomizedResponse", "DiscreteLaplace", "PureDP") and not replace:
        return Run(
            (
                sampled_atoms(whole.losses[0], rate, "remove"),
                sampled_atoms(whole.losses[0], rate, "add"),
            )
        )
    raise NotCovered(f"a Poisson sample of {kind} under {description['adjacency']} is not verified")


def fixed_size(description: Fields) -> Run | None:
    """Return what a sample of fixed size loses, its noise in units of what a replacement moves.

    To replace one, ``C_q(G_mu)`` bounds it and "remove" and "add" are attained; to zero out, half
    their moves.
    """
    inner, adjacency = field(description, "inner", dict), among(description, "adjacency")
    if inner.get("type") != "Gaussian":
        raise NotCovered("samples of fixed size are verified for Gaussian noise only")
    if adjacency == "zero-out" and description.get("clipped"):
        raise NotCovered("samples of clipped contributions are not verified under zero-out")
    if number(inner, "noise_multiplier") == math.inf or not field(description, "batch_size", int):
        return None
    size, examples = field(description, "batch_size", int), field(description, "examples", int)
    rate = Fraction(size, limited("examples", examples, size, math.inf))
    noise = positive(number(inner, "noise_multiplier"))
    half = GaussianLoss(1 / (2 * noise))
    if rate == 1:
        return Run(
            (GaussianLoss(1 / noise),) * 2,
            attained=None if adjacency == "replace-one" else (half, half),
        )
    ways = both(rate, noise)
    if adjacency == "add-remove":
        return Run(ways)
    attained = ways if adjacency == "replace-one" else both(rate, 2 * noise)
    return Run((mirrored(rate, noise),) * 2, attained=attained)


def leaves(description: Fields, count: int = 1) -> Iterator[tuple[Fields, int]]:
    """Yield the mechanisms that a plan composes, and how often each runs."""
    kind = field(description, "type", str)
    if kind == "Composed":
        for part in field(description, "parts", list):
            yield from leaves(part, count)
    elif kind == "Repeated":
        yield from leaves(
            field(description, "inner", dict), count * field(description, "count", int)
        )
    elif kind == "GaussianSequence":
        for noise in field(description, "noise_multipliers", list):
            yield (
                noisy("PoissonSubsampled", noise, description, rate=number(description, "rate")),
                count,
            )
    elif kind == "DPSGD":
        yield from training(description, count)
    elif kind == "FedSDP":
        yield client_round(description), count * field(description, "rounds", int)
    else:
        yield description, count


def noisy(kind: str, noise: Any, plan: Fields, **fields: Any) -> Fields:
    """Return the description of a noisy sum over a sample."""
    inner = {"type": "Gaussian", "noise_multiplier": "inf" if noise == math.inf else noise}
    return {"type": kind, "inner": inner, "adjacency": among(plan, "adjacency"), **fields}


def client_round(plan: Fields) -> Fields:
    """Return a round of DP-FedAvg: a noisy sum of clipped changes over a sample of clients.

    A client that is replaced moves the sum by 2, and so does one in whose place another is drawn.
    """
    sampling, noise = field(plan, "sampling", str), number(plan, "noise_multiplier")
    total = limited("total_clients", field(plan, "total_clients", int), 1, math.inf)
    drawn = limited("clients_per_round", field(plan, "clients_per_round", int), 1, total)
    if drawn == total or sampling == "poisson":
        return noisy("PoissonSubsampled", noise, plan, rate=Fraction(drawn, total))
    if sampling != "fixed-size":
        raise NotCovered(f"clients whose sampling is {sampling} are not verified")
    clipped = among(plan, "adjacency") == "zero-out"
    sizes = {"batch_size": drawn, "examples": total, "clipped": clipped}
    return noisy("FixedSizeSubsampled", noise / 2, plan, **sizes)


def training(plan: Fields, count: int) -> Iterator[tuple[Fields, int]]:
    """Yield the steps of DP-SGD, and what runs besides.

    A batch that is clipped as a whole moves by 2, and so does one that is sure to hold the replaced
    example; noise on samples of fixed size is in units of a replacement, which moves by 2.
    """
    sampling, batch = field(plan, "sampling", str), among(plan, "clipping") == "batch"
    replace, examples = among(plan, "adjacency") == "replace-one", plan.get("examples")
    rate = finite(number(plan, "rate")) if plan.get("rate") is not None else None
    if rate is None:
        rate = Fraction(field(plan, "batch_size", int), max(field(plan, "examples", int), 1))
    fixed = sampling == "fixed-size"
    if plan.get("examples_per_user", 1) != 1:
        raise NotCovered("DP-SGD for users with several examples is not verified")
    if plan.get("batch_cap") is not None or sampling not in ("poisson", "full-batch", "fixed-size"):
        raise NotCovered(f"DP-SGD with batches that are {sampling} or capped is not verified")
    if batch and not fixed and (replace or examples is not None):
        raise NotCovered(
            "DP-SGD with a stated number of examples and batches clipped as a whole is not verified"
        )
    for (factor, growth), times in factors(plan, steps(plan, rate)).items():
        noise, share = number(plan, "noise_multiplier") * factor, rate * growth
        if fixed and share < 1:
            size = {"batch_size": integer(share * (examples or 0)), "examples": examples}
            size["clipped"] = not batch
            yield noisy("FixedSizeSubsampled", noise / 2, plan, **size), count * times
        elif share < 1:
            yield (
                noisy("PoissonSubsampled", noise / (2 if batch else 1), plan, rate=share),
                count * times,
            )
        else:
            whole = noisy(
                "PoissonSubsampled", noise / (2 if batch or replace else 1), plan, rate=share
            )
            yield {**whole["inner"], "adjacency": plan["adjacency"]}, count * times
    if plan.get("extra") is not None:
        yield from leaves(field(plan, "extra", dict), count)


def steps(plan: Fields, rate: Fraction) -> int:
    """Return the steps, as planned or ``ceil(epochs / rate)``.

    A rate, or a number of epochs with a fraction, that is the float nearest to one of a whole
    number of steps stands for that.
    """
    if plan.get("steps") is not None:
        return int(field(plan, "steps", int))
    epochs = finite(number(plan, "epochs"))
    if not rate:
        raise AnswerError("rate: 0 is not allowed; more than 0 is, where epochs are given")
    whole = round(epochs / rate)
    meant = plan.get("rate") is not None and whole and float(epochs / whole) == float(rate)
    if meant or (epochs.denominator > 1 and whole and float(whole * rate) == float(epochs)):
        return whole
    return math.ceil(epochs / rate)


def factors(plan: Fields, total: int) -> Mapping[tuple[Fraction, Fraction], int]:
    """Return what noise and rate are multiplied with, and in how many of the steps."""
    names = "schedule", "batch_schedule"
    both = [None if plan.get(name) is None else field(plan, name, dict) for name in names]
    if both == [None, None]:
        return {(Fraction(1), Fraction(1)): total}
    if total > MOST_SCHEDULED:
        raise NotCovered(f"schedules are verified up to {MOST_SCHEDULED:,} steps")
    each = [
        list(repeat(Fraction(1), total)) if one is None else list(schedule(one, total))
        for one in both
    ]
    if {len(one) for one in each} != {total}:
        raise AnswerError(f"schedule: its length is not allowed; the number of steps, {total}, is")
    return Counter(zip(*each, strict=True))


def schedule(one: Fields, total: int) -> Iterator[Fraction]:
    """Yield a schedule's factor by step; where it is irrational, the nearest float."""
    kind, last = field(one, "type", str).removeprefix("schedules."), max(total - 1, 1)
    if kind == "Constant":
        yield from repeat(Fraction(1), total)
    elif kind == "Linear":
        yield from (1 + (number(one, "end") - 1) * Fraction(t, last) for t in range(total))
    elif kind == "Exponential":
        yield from (Fraction(float(number(one, "end")) ** (t / last)) for t in range(total))
    elif kind == "Staircase":
        stairs = field(one, "stairs", int)
        rise = (number(one, "end") - 1) / max(stairs - 1, 1)
        yield from (1 + rise * (t * stairs // total) for t in range(total))
    elif kind == "Cyclic":
        period, floor = max(-(-total // field(one, "cycles", int)), 1), float(number(one, "floor"))
        waves = (0.5 * (1 + math.cos(math.pi * (t % period) / period)) for t in range(total))
        yield from (Fraction(floor + (1 - floor) * wave) for wave in waves)
    elif kind == "Piecewise":
        for length, value in field(one, "segments", list):
            yield from repeat(exact(value, "segments"), length)
    elif kind == "Values":
        yield from (exact(value, "values") for value in field(one, "values", list))
    else:
        raise NotCovered(f"a schedule of type {kind} is not verified")
