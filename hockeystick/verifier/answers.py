"""What an answer claims, and whether that holds."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from flint import arb, ctx

from .balls import LN2, Ball, Box, NotCovered, ball
from .fields import AnswerError, Fields, end_of, exact, field, finite, number
from .integrals import Kernel, LatticeKernel, Losses, integral, laplace_sum, log_bound, near, saddle
from .moments import AtomicLoss
from .plans import leaves, run_of

SCHEMA: Final = "hockeystick-answer/1"
MORE: Final = (0.0, 40.0, 80.0)  # bits than claims are apart, tried one after the other
MOST_BITS: Final = 10_000  # of precision: more would take hours
MOST_LOSSES: Final = 200
MOST_SUMMED: Final = 300  # runs of Laplace noise; many more take longer than the integral


@dataclass(frozen=True)
class Check:
    """A claim, the ball that the true value is in, and whether the claim holds."""

    claim: str
    ball: str
    holds: bool


@dataclass(frozen=True)
class Verdict:
    """What became of an answer: ``verified``, ``refuted`` or ``not covered``; why; every check."""

    status: str
    reason: str = ""
    checks: tuple[Check, ...] = ()

    @property
    def exit_status(self) -> int:
        """Return 0, 1 or 3."""
        return {"verified": 0, "refuted": 1, "not covered": 3}[self.status]


def verify(text: str) -> Verdict:
    """Judge an answer by its JSON, numbers as printed.

    Returns:
        ``verified`` where every claim is proven, ``refuted`` where one is proven wrong, and else
        ``not covered``, with the reason.

    Raises:
        AnswerError: If the text is no answer of a known form.

    Example:
        >>> import hockeystick as hs
        >>> import json
        >>> from hockeystick.verifier import verify
        >>> plan = hs.Gaussian(2.0)
        >>> told = hs.answers.document(hs.epsilon(plan, delta=1e-5), plan)
        >>> verify(json.dumps(told)).status
        'verified'
    """
    bits = ctx.prec
    try:
        groups = together(list(claims(parsed(text))))
        checks = tuple(check for group in groups for check in judged(group))
    except NotCovered as error:
        return Verdict("not covered", str(error))
    finally:
        ctx.prec = bits
    wrong = "; ".join(
        f"{check.claim}, but it is {check.ball}" for check in checks if not check.holds
    )
    return Verdict("refuted" if wrong else "verified", wrong, checks)


@dataclass(frozen=True)
class Claim:
    """``delta(epsilon) <= delta`` of a plan, or ``>=``, and which end of an answer says so."""

    end: str
    plan: Fields
    epsilon: Fraction
    at_most: bool
    delta: Fraction
    decreasing: bool = False  # it says more only where delta is above its limit

    def __str__(self) -> str:
        sign = "<=" if self.at_most else ">="
        return f"{self.end}: delta({float(self.epsilon)!r}) {sign} {float(self.delta)!r}"


def claims(answer: Fields) -> Iterator[Claim]:
    """Yield what an answer says; what holds of any plan is left out."""
    plan = field(answer, "description", dict)
    if "parameter" in answer:
        yield from solution(answer, plan)
        return
    if answer.get("kind") != "certified" or answer.get("quantity") not in ("epsilon", "delta"):
        raise NotCovered(
            f"{answer.get('kind')!r} answers on {answer.get('quantity')!r} are not verified"
        )
    asked = "delta" if answer["quantity"] == "epsilon" else "epsilon"
    yield from interval(answer, plan, finite(number(field(answer, "at", dict), asked)))


def interval(ends: Fields, plan: Fields, asked: Fraction) -> Iterator[Claim]:
    """Yield what both ends of an epsilon or a delta say."""
    lower, upper, epsilon = (
        end_of(ends, "lower"),
        end_of(ends, "upper"),
        ends["quantity"] == "epsilon",
    )
    if lower > upper:
        raise AnswerError(
            f"lower: {float(lower)!r} is not allowed; at most upper, {float(upper)!r}, is"
        )
    for end, value, at_most in (("upper end", upper, True), ("lower end", lower, False)):
        if value < (math.inf if epsilon else 1) if at_most else value > 0:
            pair = (finite(value), asked) if epsilon else (asked, finite(value))
            yield Claim(end, plan, pair[0], at_most, pair[1], epsilon and not at_most)


def solution(answer: Fields, plan: Fields) -> Iterator[Claim]:
    """Yield that the value meets the budget, that the next one misses it, and what is achieved."""
    if answer.get("budget") is None:
        raise NotCovered("solutions for one (epsilon, delta) only are verified")
    budget, value = field(answer, "budget", dict), number(answer, "value")
    epsilon, delta = finite(number(budget, "epsilon")), finite(number(budget, "delta"))
    if value not in values(plan):
        raise AnswerError(
            f"value: {float(value)!r} is not allowed; one that the description holds is"
        )
    yield Claim("value", plan, epsilon, True, delta)
    if answer.get("misses") is not None:
        held, missed = values(plan), values(answer["misses"])
        changed = [pair for pair in zip(held, missed, strict=False) if pair[0] != pair[1]]
        bracket = {exact(end, "bracket") for end in field(answer, "bracket", list)}
        one = len(changed) == 1 and len(held) == len(missed)
        if not one or set(changed[0]) != bracket or changed[0][0] != value:
            raise AnswerError(
                "misses: it is not allowed to differ from description but in the bracket's end"
            )
        yield Claim("next value", answer["misses"], epsilon, False, delta, True)
    achieved = field(answer, "achieved", dict)
    if achieved.get("quantity") in ("epsilon", "delta"):
        yield from interval(achieved, plan, delta if achieved["quantity"] == "epsilon" else epsilon)


def values(description: Any) -> list[Any]:
    """Return all that a description holds, in order."""
    if isinstance(description, Mapping) and set(description) not in ({"fraction"}, {"float"}):
        parts = ((name, *values(description[name])) for name in sorted(description))
        return [len(description), *(value for part in parts for value in part)]
    if isinstance(description, list):
        return [len(description), *(value for item in description for value in values(item))]
    return [
        description
        if description is None or isinstance(description, str | bool)
        else exact(description, "a number")
    ]


def together(wanted: Sequence[Claim]) -> Iterator[list[Claim]]:
    """Yield claims that one integration settles: one plan, the same losses, close in epsilon."""
    group: list[Claim] = []
    for claim in wanted:
        same = (
            bool(group)
            and claim.plan is group[0].plan
            and abs(claim.epsilon - group[0].epsilon) * 10**6 <= claim.epsilon
        )
        if group and not (same and (claim.at_most == group[0].at_most or not bounded(claim))):
            yield group
            group = []
        group.append(claim)
    if group:
        yield group


def judged(group: Sequence[Claim]) -> list[Check]:
    """Return which claims hold: an upper end in both directions, a lower one in some."""
    checks: dict[int, Check] = {}
    for direction in (0, 1):
        left = [
            k
            for k, claim in enumerate(group)
            if k not in checks or checks[k].holds == claim.at_most
        ]
        if not left:
            break
        for more in MORE if direction == 0 else (-math.inf, *MORE):
            balls, full, symmetric = deltas([group[k] for k in left], direction, more)
            pairs = [(k, found, ball(group[k].delta)) for k, found in zip(left, balls, strict=True)]
            if all(found <= wanted or found >= wanted for _, found, wanted in pairs):
                break
            if not full:
                raise NotCovered(
                    "the integral converges too slowly, as with few runs whose losses have atoms"
                )
        else:
            raise NotCovered(f"{group[0]} is too close to tell")
        for k, found, wanted in pairs:
            claim = group[k]
            holds = bool(found <= wanted if claim.at_most else found >= wanted)
            if k not in checks or holds != claim.at_most:
                checks[k] = Check(str(claim), found.str(12), holds)
        if symmetric:
            break
    return [sure(claim, checks[k]) for k, claim in enumerate(group)]


def sure(claim: Claim, check: Check) -> Check:
    """Return a check, unless it refutes an end that lies between a bound and what is attained."""
    if not check.holds and bounded(claim) and not contradicted(claim):
        raise NotCovered(f"{claim} lies between a bound and what is known to be attained")
    return check


def contradicted(claim: Claim) -> bool:
    """Return whether an end that fails is wrong, where upper and lower ends are on other losses."""
    other = replace(claim, at_most=not claim.at_most, decreasing=False)
    found = [deltas([other], direction, 0.0)[0][0] for direction in (0, 1)]
    wanted = ball(claim.delta)
    return (
        any(each > wanted for each in found)
        if claim.at_most
        else all(each < wanted for each in found)
    )


def bounded(claim: Claim) -> bool:
    """Return whether the losses of a plan are a bound, and those of the lower end others."""
    runs = (run_of(leaf) for leaf, count in leaves(claim.plan) if count)
    return any(run is not None and run.attained is not None for run in runs)


def deltas(group: Sequence[Claim], direction: int, more: float) -> tuple[list[Ball], bool, bool]:
    """Return a ball around delta for each claim, whether they are small, and both directions alike.

    Small is some part of how far apart the claims are, by more bits each time. A ball is wide where
    Chernoff's bound, ``M(c) e^{-c epsilon} c^c / (c+1)^{c+1}``, is enough.
    """
    ctx.prec = 100
    losses, failure, symmetric = composed(group[0], direction)
    kernels = [kernel_for(losses, claim.epsilon) for claim in group]
    some, wanted = [kernel for kernel in kernels if kernel is not None], [c.delta for c in group]
    for claim in group:
        if claim.decreasing and failure.overlaps(ball(claim.delta)):
            raise NotCovered(f"{claim} says nothing, where delta decreases to that and no further")
    if not some:
        return [failure for _ in group], True, symmetric
    upper = all(claim.at_most for claim in group)
    least = math.log(max(float(min(wanted)), 1e-320))
    c, height = saddle(losses, some[0], least - 1 if upper else -math.inf)
    power = arb(c) * arb(c).log() - (arb(c) + 1) * (arb(c) + 1).log()
    parts = near(losses, Box(c, c, 0.0, 0.0), 20)
    tops = [log_bound(parts, Kernel(kernel.epsilon), c, 0.0) for kernel in some]
    found, full = [arb(0).union((power + top).exp()) for top in tops], True
    if not (parts and upper and all(failure + top < ball(min(wanted)) for top in found)):
        apart = float(max(k.epsilon for k in some) - min(k.epsilon for k in some)) * c
        apart += float(1 - min(wanted) / max(wanted)) if any(wanted) else 0.0
        goal = least - LN2 * max(4 - math.log2(apart or 2.0**-40) + more, 6.0)
        bits = max((height + math.log(c) - goal) / LN2, 12.0)
        if bits > MOST_BITS:
            raise NotCovered(f"{group[0]} takes more than {MOST_BITS:,} bits")
        ctx.prec = 80 + int(bits)
        losses, failure, _ = composed(group[0], direction)
        scale, count = getattr(losses[0][0], "scale", None), losses[0][1]
        if len(losses) == 1 and scale is not None and count <= MOST_SUMMED:
            ctx.prec += count
            found, full = [laplace_sum(scale, count, k.epsilon) for k in some], True
        else:
            found, full = integral(losses, some, c, bits, goal)
    return [failure + (found.pop(0) if kernel else 0) for kernel in kernels], full, symmetric


def composed(claim: Claim, direction: int) -> tuple[Losses, Ball, bool]:
    """Return the losses that a claim is on, the mass that fails, and if directions are alike."""
    counts: Counter[str] = Counter()
    found: dict[str, Fields] = {}
    for leaf, count in leaves(claim.plan):
        key = repr(values(leaf))
        found[key] = leaf
        counts[key] += count
    if len({leaf["adjacency"] for leaf in found.values() if leaf.get("adjacency") is not None}) > 1:
        raise AnswerError("adjacency: parts of one plan that differ in it are not allowed")
    if len(found) > MOST_LOSSES:
        raise NotCovered(
            f"{len(found):,} different mechanisms are composed; up to {MOST_LOSSES} are verified"
        )
    losses, works, symmetric = [], arb(1), True
    for key, count in counts.items():
        run = run_of(found[key]) if count else None
        if run is not None:
            pair = run.losses if claim.at_most or run.attained is None else run.attained
            losses.append((pair[direction], count))
            works *= ball(1 - run.failure) ** count
            symmetric = symmetric and pair[0] is pair[1]
    return losses, 1 - works, symmetric


def kernel_for(losses: Losses, epsilon: Fraction) -> Any:
    """Return by what M is multiplied; None where no loss is above epsilon."""
    on_lattice = all(isinstance(loss, AtomicLoss) and loss.span is not None for loss, _ in losses)
    if not losses or not on_lattice:
        return Kernel(epsilon) if losses else None
    whole = math.lcm(*(loss.span.denominator for loss, _ in losses))
    span = Fraction(math.gcd(*(int(loss.span * whole) for loss, _ in losses)), whole)
    if not span:
        return None
    if max(loss.span for loss, _ in losses) > 10_000 * span:
        raise NotCovered("the losses lie on no common lattice that is wide enough")
    base = sum(count * loss.least for loss, count in losses)
    least = base + (math.floor((epsilon - base) / span) + 1) * span
    finite_ = all(loss.largest is not None for loss, _ in losses)
    if finite_ and least > sum(count * loss.largest for loss, count in losses):
        return None
    return LatticeKernel(epsilon, span, least)


def decimal(text: str) -> Fraction:
    """Return a JSON number exactly, unless its exponent is out of all use."""
    if len(text) > 2000 or abs(int((re.findall(r"[eE]([-+]?\d+)", text) or ["0"])[0])) > 2000:
        raise AnswerError(f"{text:.60} is not allowed; a number of at most 2000 digits is")
    return Fraction(text)


def parsed(text: str) -> Fields:
    """Return the answer in a text, its numbers as printed."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for name, _ in pairs:
            if sum(name == other for other, _ in pairs) > 1:
                raise AnswerError(f"{name}: it is not allowed twice")
        return dict(pairs)

    try:
        answer = json.loads(
            text, parse_float=decimal, parse_constant=decimal, object_pairs_hook=unique
        )
    except AnswerError:
        raise
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"the answer is not JSON: {error}") from None
    found = answer.get("schema") if isinstance(answer, dict) else answer
    if found != SCHEMA:
        raise AnswerError(f"schema: {found!r:.60} is not allowed; {SCHEMA!r} is")
    return answer  # type: ignore[no-any-return]


def answer_in(page: str) -> str:
    """Return the answer's JSON that a report in HTML holds.

    Example:
        >>> from hockeystick.verifier import answer_in
        >>> answer_in('<script type="application/json" id="hockeystick-answer">{}</script>')
        '{}'
    """
    pattern = '<script type="application/json" id="hockeystick-answer">(.*?)</script>'
    found = re.findall(pattern, page, re.DOTALL)
    if len(found) != 1:
        raise AnswerError(f"the page holds {len(found)} answers; one is allowed")
    return str(found[0])
