"""What a report says: every number of it, asked once, before anyone lays it out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, final

from hockeystick.accountants.ask import delta, epsilon
from hockeystick.accountants.comparison import GaussianSummary, Row, compare, gaussian_summary
from hockeystick.accountants.tradeoff import tradeoff
from hockeystick.answers import Caution, Decision, cautions, decide, document, verify
from hockeystick.calibration import calibrate
from hockeystick.errors import HockeystickError
from hockeystick.mechanisms import DPSGD, Mechanism
from hockeystick.notions import ApproxDP
from hockeystick.numerics.numerals import plain
from hockeystick.reports.audit import Audit, Audited, audited
from hockeystick.reports.course import Course, course_of
from hockeystick.reports.ledger import Ledgered
from hockeystick.results import Certified

if TYPE_CHECKING:
    from hockeystick import verifier

_Told = TypeVar("_Told")
# How many points a curve has, by the accountant that answers: a lattice takes its time.
_SPARSE: Final = 7
_DENSE: Final = 25
_QUICK: Final = ("closed-form", "contour")
_LOW_RATES: Final = (*(float(f"{m}e{k}") for k in range(-6, 0) for m in (1, 2, 5)), 1.0)
_EVEN_RATES: Final = tuple(k / 40 for k in range(41))
_READ_AT: Final = 0.01
_TABLE_RATES: Final = (0.1, 0.01, 0.001, 1e-4, 1e-5)
_GROUPS: Final = (2, 5, 10)
_NOT_ASKED: Final = "this was not asked for, but can be at any time"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a report is about, as ``report`` takes it.

    Args:
        plan: The mechanism or plan.
        delta: Where epsilon is asked for, in [0, 1].
        title: What to call it.
        source: Where the plan's numbers come from.
        notes: What a reader should know.
        file_name: The plan file.
        file_content: What it holds.
        commands: What gives the headline and the page again, as lines for a shell.
        budget: The largest epsilon that is allowed.
        verify: Whether a second program is to verify the headline.
        audit: The scores of an attack on what ran.
        ledger: What the ledger of the data says.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.reports import Subject
        >>> Subject(plan=hs.Laplace(2) ** 10, delta=1e-5, title="Ten counts").title
        'Ten counts'
    """

    plan: Mechanism
    delta: float
    title: str | None = None
    source: str | None = None
    notes: str | None = None
    file_name: str | None = None
    file_content: bytes | None = None
    commands: tuple[str, ...] = ()
    budget: float | None = None
    verify: bool = False
    audit: Audit | None = None
    ledger: Ledgered | None = None


class Point(NamedTuple):
    """A proven interval of a curve: lower <= truth <= upper at one place."""

    at: float
    lower: float
    upper: float


@final
@dataclass(frozen=True, slots=True)
class Attack:
    """What an attacker could learn: proven ends.

    Args:
        misses: At false positive rates, the ends of the least false negative rate.
        finds: At low ones, the ends of the largest true positive rate.
        table: At a few, the largest true and the least false negative rate.
        headline: The false positive rate to quote, and the largest true positive rate there.
        advantage: The most that true and false positive rate can differ.
        bayes_error: The least error of guessing at equal odds.
        gaussian: The mu that sums it up, and its regret.
    """

    misses: tuple[Point, ...]
    finds: tuple[Point, ...]
    table: tuple[tuple[float, float, float], ...]
    headline: tuple[float, float]
    advantage: float
    bayes_error: float
    gaussian: GaussianSummary


class Group(NamedTuple):
    """What a plan costs somebody with several examples: an answer, or why there is none."""

    examples: int
    answer: Certified | None
    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that a report says of its subject; None for what is not known, or was not asked.

    Args:
        subject: What it is about.
        answer: Epsilon at the subject's delta.
        decision: Whether it is within the subject's budget.
        remedies: What would meet that budget, a sentence each.
        cautions: What whoever decides should know besides.
        groups: Epsilon at the subject's delta for a person with several examples.
        by_delta: Epsilon at several deltas.
        by_epsilon: Delta at several epsilons.
        attack: What an attacker could learn.
        no_attack: Why that is not known.
        course: The stages of the plan.
        spent: Epsilon at the subject's delta after each stage.
        rows: What each accountant says.
        document: The answer as a document.
        verdict: What the verifier says of it.
        not_verified: Why it was not asked.
        audited: What the scores of an attack prove.
    """

    subject: Subject
    answer: Certified
    decision: Decision | None
    remedies: tuple[str, ...]
    cautions: tuple[Caution, ...]
    groups: tuple[Group, ...]
    by_delta: tuple[Point, ...]
    by_epsilon: tuple[Point, ...]
    attack: Attack | None
    no_attack: str
    course: Course | None
    spent: tuple[Point, ...]
    rows: tuple[Row, ...]
    document: Mapping[str, Any] | None
    verdict: verifier.Verdict | None
    not_verified: str
    audited: Audited | None


def investigate(
    subject: Subject, tell: Callable[..., None] = lambda done, total, now="": None
) -> Findings:
    """Return all that a report says of its subject; errors are those of ``report``.

    ``tell`` is told how many questions of how many are answered, and what is under way.

    Guarantees:
        Every number is a proven end, but for the rows that say that they are approximations.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.reports import Subject, investigate
        >>> subject = Subject(plan=hs.Gaussian(4) ** 10, delta=1e-5)
        >>> findings = investigate(subject)
        >>> findings.answer.upper == hs.epsilon(hs.Gaussian(4) ** 10, delta=1e-5).upper
        True
    """
    plan = subject.plan
    answer = epsilon(subject.plan, subject.delta)
    most = _DENSE if answer.accountant in _QUICK else _SPARSE
    deltas, epsilons = _deltas(subject.delta, most), _epsilons(answer.upper, most)
    course = course_of(plan, most)
    stages = () if course is None else course.stages
    sizes = _GROUPS if isinstance(plan, DPSGD) and plan.examples_per_user == 1 else ()
    given = [one for one in [subject.audit] if one is not None]
    asked = (deltas, epsilons, stages, sizes, given)
    total = sum(map(len, asked)) + 3  # attacks, accountants, verifier
    done = 0

    def told(now: str, answers: Iterator[_Told]) -> Iterator[_Told]:
        nonlocal done
        tell(done, total, now)
        for one in answers:
            done += 1
            tell(done, total, now)
            yield one

    at = subject.delta
    by_delta = tuple(told("epsilons", (_point(d, epsilon(plan, d)) for d in deltas)))
    by_epsilon = tuple(told("deltas", (_point(e, delta(plan, epsilon=e)) for e in epsilons)))
    spent = tuple(told("its course", (_point(t, epsilon(one, at)) for t, one in stages)))
    groups = tuple(told("groups", (_group(plan, size, at) for size in sizes)))
    ((attack, no_attack),) = told("attacks", (_or_why(_attack, one) for one in [plan]))
    (rows,) = told("other accountants", (compare(one, delta=at) for one in [plan]))
    ((held, verdict, not_verified),) = told("verifier", map(_verified, [subject], [answer]))
    shown = [*told("audit", (audited(one, plan=plan, delta=at) for one in given))]
    decision = None if subject.budget is None else decide(answer, subject.budget)
    quick, asked_for = answer.accountant in _QUICK, subject.budget or 0.0
    is_met = decision in (None, Decision.MEETS)
    return Findings(
        subject=subject,
        answer=answer,
        decision=decision,
        remedies=() if is_met else remedies(plan, asked_for, at, quick=quick),
        cautions=cautions(answer, subject.plan, delta=at),
        groups=groups,
        by_delta=by_delta,
        by_epsilon=by_epsilon,
        attack=attack,
        no_attack=no_attack,
        course=course,
        spent=spent,
        rows=rows,
        document=held,
        verdict=verdict,
        not_verified=not_verified,
        audited=shown[0] if shown else None,
    )


def remedies(plan: Mechanism, epsilon: float, delta: float, *, quick: bool) -> tuple[str, ...]:
    """Return what would meet a budget, provably: for training, if quick, with values."""
    found = []
    if quick and isinstance(plan, DPSGD):
        length = "steps" if plan.steps is not None else "epochs"
        for name, side in (("noise_multiplier", "or more"), (length, "or fewer")):
            with suppress(HockeystickError):
                value = calibrate(plan, name, ApproxDP(epsilon, delta))
                given = plain(float(getattr(plan, name)))
                told = f"{value:.0f}" if name == "steps" else f"{value:.6g}"
                found.append(f"With {name} {told} {side} in place of {given} it meets that budget.")
    return tuple(found) or ("`hockeystick solve` finds what meets that budget.",)


def _or_why(answer: Callable[..., _Told], *given: Any) -> tuple[_Told | None, str]:
    """Return what is found, or why there is nothing."""
    try:
        return answer(*given), ""
    except HockeystickError as error:
        return None, str(error)


def _group(plan: Any, size: int, delta: float) -> Group:
    return Group(size, *_or_why(lambda: epsilon(replace(plan, examples_per_user=size), delta)))


def _verified(
    subject: Subject, answer: Certified
) -> tuple[Mapping[str, Any] | None, verifier.Verdict | None, str]:
    """Return the answer as a document, and the verdict on it, or why there is none."""
    told, why = _or_why(lambda: document(answer, subject.plan, delta=subject.delta))
    if told is None or not subject.verify:
        return told, None, why or _NOT_ASKED
    return told, verify(told), ""


def _attack(plan: Mechanism) -> Attack:
    even = sorted({*(rate for rate in _LOW_RATES if rate <= 0.1), *_EVEN_RATES})
    f = tradeoff(plan)
    found, missed = f.power(_TABLE_RATES).tolist(), f(_TABLE_RATES).tolist()
    return Attack(
        misses=_points(even, *f.bounds(even)),
        finds=_points(_LOW_RATES, *f.power_bounds(_LOW_RATES)),
        table=tuple(zip(_TABLE_RATES, found, missed, strict=True)),
        headline=(_READ_AT, f.power(_READ_AT)),
        advantage=float(f.advantage),
        bayes_error=float(f.bayes_error(0.5)),
        gaussian=gaussian_summary(plan),
    )


def _point(at: float, answer: Certified) -> Point:
    return Point(at, answer.lower, answer.upper)


def _points(at: Sequence[float], lower: Any, upper: Any) -> tuple[Point, ...]:
    return tuple(map(Point, map(float, at), map(float, lower), map(float, upper)))


def _deltas(asked: float, most: int) -> list[float]:
    """Return the deltas of a curve around the one that is asked at: powers of ten, and between."""
    middle = math.floor(math.log10(asked)) if asked > 0.0 else -6
    first = max(min(middle, -6) - 5, -307)
    decades = -1 - first
    step = max(1, math.ceil(decades / (most - 1)))
    powers = {float(f"1e{exponent}") for exponent in range(-1, first - 1, -step)}
    between = range(first, -1 if 2 * len(powers) <= most else first)
    own = [asked] if 0.0 < asked < 1.0 else []
    return sorted({*powers, *(float(f"3e{exponent}") for exponent in between), *own})


def _epsilons(upper: float, most: int) -> list[float]:
    """Return the epsilons of a curve from 0 to beyond an answer: multiples of a round number."""
    last = 1.5 * upper if 0.0 < upper < math.inf else 10.0
    raw = last / (most - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(one * power for one in (1, 2, 5, 10) if one * power >= raw * (1.0 - 1e-9))
    return [float(f"{k * step:.12g}") for k in range(math.ceil(last / step - 1e-9) + 1)]
