"""The commands ``epsilon``, ``delta``, ``compare`` and ``convert``: what a plan costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick.accountants import Row, SamplingRow, best_order, central_limit_mu
from hockeystick.accountants.base import TOLERANCE
from hockeystick.accountants.comparison import Truth, quoted
from hockeystick.accountants.limits import GaussianLimit
from hockeystick.accountants.rdp import RDP
from hockeystick.answers import Caution, Decision, cautions, conversion_cautions, sources
from hockeystick.cli import options, plans
from hockeystick.cli.command import command
from hockeystick.cli.options import Budget, Question
from hockeystick.cli.plans import OfGroup, for_group, plan_of
from hockeystick.cli.progress import progress, seconds
from hockeystick.cli.show import (
    KIND_STYLES,
    Sheet,
    between,
    heading,
    listed,
    print_short,
    show,
    table,
    verdict_fields,
)
from hockeystick.cli.verify import end_with, verdict_of
from hockeystick.conversions import TARGETS, lower_ends
from hockeystick.errors import IncompatibleError, UnsupportedError
from hockeystick.io import PlanFile, parse
from hockeystick.mechanisms import Mechanism, assumptions_of
from hockeystick.notions import FDP, Notion, RenyiDP
from hockeystick.numerics.numerals import (
    HEADLINE_DIGITS,
    at_least,
    at_most,
    headline,
    interval,
    jsonable,
    nearest,
    plain,
)
from hockeystick.results import Approximate, Certified

_BUDGET_STYLES: Final = {
    Decision.MEETS: "bold green",
    Decision.MISSES: "bold red",
    Decision.UNDECIDED: "bold red",
}


@command(
    "hockeystick epsilon 'Laplace(2)**3 @ Gaussian(4)' --delta 1e-6",
    "hockeystick epsilon plan.toml epochs=30 --at-most 3",
    "hockeystick epsilon rate=0.004 steps=14000 noise_multiplier=1.1 --delta 1e-5",
    takes="PLAN group delta at_most accountant tolerance digits verify short json verbose",
)
def epsilon(words: tuple[str, ...], group: Any, delta: Any, **how: Any) -> None:
    """Print the epsilon that a plan costs at a delta."""
    _answer("delta", delta, words, group, **how)


@command(
    "hockeystick delta 'Laplace(2)**3 @ Gaussian(4)' --epsilon 2",
    "hockeystick delta plan.toml --epsilon 3 --at-most 1e-5",
    takes="PLAN group epsilon at_most accountant tolerance digits verify short json verbose",
)
def delta(words: tuple[str, ...], group: Any, epsilon: Any, **how: Any) -> None:
    """Print the delta that a plan costs at an epsilon."""
    _answer("epsilon", epsilon, words, group, **how)


def _answer(
    name: str,
    given: Any,
    words: tuple[str, ...],
    group: Any,
    *,
    at_most: Any,
    verify: bool,
    tolerance: Any,
    **how: Any,
) -> None:
    """Print the answer to one question, and what the verifier says of it."""
    if verify:
        hs.answers.require_verifier()
    options.refuse_beside_short(verify)
    file = plan_of(words, group)
    at = options.question(name, given, file)
    budget = options.budget_of(at_most, at.quantity)
    how["tolerance"] = TOLERANCE if tolerance is None else tolerance
    ask: Any = hs.epsilon if name == "delta" else hs.delta
    with progress(f"computing {at.quantity}"):
        answer = ask(file.plan, **at.asked, **how)
        options.refuse_infinite(at, answer)
        decided = options.decided(answer, file.plan, at, budget)
    verdict = verdict_of(answer, file.plan, **at.asked) if verify else None
    found = cautions(answer, file.plan, **at.asked)
    if options.is_given("short"):
        _print_short(answer, found)
    else:
        show(
            lambda: {
                **_as_dict(file, at, answer, decided, found),
                **({"verification": verdict_fields(verdict)} if verdict else {}),
            },
            lambda: _sheet(file, at, answer, decided, found),
        )
    meets = decided is None or decided.decision is Decision.MEETS
    end_with(verdict, otherwise=0 if meets else options.MISSED)


def _print_short(answer: Certified | Approximate, found: Sequence[Caution]) -> None:
    """Print the number to quote alone, and on standard error what is grave."""
    if isinstance(answer, Approximate):
        raise click.UsageError(f"--short prints what is proven; {answer.accountant} proves nothing")
    grave = [f"caution: {one.text}" for one in found if not one.is_mild]
    print_short(at_most(answer.upper), *grave)


def _as_dict(
    file: PlanFile,
    at: Question,
    answer: Certified | Approximate,
    decided: Budget | None,
    found: Sequence[Caution],
) -> dict[str, Any]:
    """Return the answer ready for JSON; what is proven, as a document to check."""
    about = heading(file, quantity=at.quantity, at={at.name: jsonable(at.value)})
    if isinstance(answer, Approximate):
        told = {**about, **answer.as_dict()}
    else:
        checkable = hs.answers.document(answer, file.plan, **at.asked)
        told = {"schema": hs.answers.SCHEMA, **about, **checkable}
    if decided is not None:
        told["budget"] = {
            "at_most": jsonable(decided.at_most),
            "decision": decided.decision,
            "reservation": decided.reservation or None,
        }
    told["cautions"] = listed(found)
    told["sources"] = listed(sources(file.plan, answer.accountant))
    if answer.accountant == GaussianLimit.name:
        told["mu"] = jsonable(central_limit_mu(file.plan).value)
    if answer.accountant == RDP.name and answer.quantity == "epsilon":
        told["order"] = jsonable(best_order(file.plan, at.value))
    return told


def _sheet(
    file: PlanFile,
    at: Question,
    answer: Certified | Approximate,
    decided: Budget | None,
    found: Sequence[Caution],
) -> Sheet:
    """Return the answer for people."""
    sheet = Sheet(file.title)
    asked = f" at {at.name} = {plain(at.value)}"
    if isinstance(answer, Certified):
        number = headline(answer.lower, answer.upper)
        style = "bold green" if answer.upper < math.inf else "bold red"
        proven = Text(between(answer.lower, answer.upper))
    else:
        number, style = f"about {nearest(answer.value)}", "bold red"
        proven = Text("nothing: this is an approximation, no guarantee", style="red")
    sheet.fact(answer.quantity, Text.assemble((number, style), asked))
    if decided is not None:
        budget = f"{answer.quantity} at most {plain(decided.at_most)}"
        but = f", but {decided.reservation}" if decided.reservation else ""
        verdict = (str(decided.decision), _BUDGET_STYLES[decided.decision])
        sheet.fact("budget", Text.assemble(verdict, f": {budget}{but}"))
    sheet.fact("proven", proven)
    sheet.plan(file, answer.adjacency, answer.accountant)
    sheet.cautions(found)
    sheet.holds_if(answer.assumptions)
    sheet.more_of(
        "Sources", [f"{one.of}: {one.text}" for one in sources(file.plan, answer.accountant)]
    )
    return sheet


@command(
    "hockeystick compare 'Gaussian(4) @ Laplace(2)**3' --delta 1e-6",
    "hockeystick compare plan.toml noise_multiplier=1.3",
    takes="PLAN samplings group delta epsilon json verbose",
)
def compare(words: tuple[str, ...], samplings: bool, group: Any, delta: Any, epsilon: Any) -> None:
    """Print what each accountant says of a plan."""
    file = plan_of(words, group)
    at = options.one_question(file, delta, epsilon)
    about = heading(file, quantity=at.quantity, at={at.name: jsonable(at.value)})
    plan: Any = file.plan
    if samplings:
        with progress("asking for each sampling") as tell:
            found = hs.accountants.compare_samplings(plan, **at.asked, progress=tell)
        show(
            lambda: {**about, "samplings": [_sampling_as_dict(row) for row in found]},
            lambda: _samplings(file, at, found),
        )
        return
    with progress("asking each accountant"):
        rows = hs.compare(plan, **at.asked)
    options.refuse_infinite(at, *(row.answer for row in rows))
    truth, theorems = Truth.of(rows), hs.answers.sources_of_all(plan, rows)
    show(
        lambda: {
            **about,
            "proven": {"lower": jsonable(truth.lower), "upper": jsonable(truth.upper)},
            "accountants": [_row_as_dict(row, truth) for row in rows],
            "sources": listed(theorems),
        },
        lambda: _comparison(file, at, rows, [f"{one.of}: {one.text}" for one in theorems]),
    )


def _sampling_as_dict(row: SamplingRow) -> dict[str, Any]:
    """Return the answer for one sampling."""
    return {
        "sampling": row.sampling,
        "adjacency": row.adjacency,
        "answer": None if row.answer is None else row.answer.as_dict(),
        "reason": row.reason or None,
        "seconds": row.seconds,
    }


def _row_as_dict(row: Row, truth: Truth) -> dict[str, Any]:
    """Return the answer of one accountant."""
    told: dict[str, Any] = {
        "accountant": row.accountant,
        "kind": row.kind,
        "answer": None,
        "reason": row.reason or None,
        "seconds": row.seconds,
    }
    if row.answer is not None:
        value = quoted(row.answer)
        ratio = truth.ratio(value)
        told["answer"] = row.answer.as_dict()
        told["ratio_to_proven_upper"] = None if ratio is None else jsonable(ratio)
        told["below_the_truth"] = truth.is_above(value)
    return told


def _asked(file: PlanFile, at: Question) -> Sheet:
    """Return what is asked of which plan."""
    sheet = Sheet(file.title)
    sheet.fact("question", f"{at.quantity} at {at.name} = {plain(at.value)}")
    sheet.plan(file, file.plan.adjacency)
    return sheet


def _comparison(
    file: PlanFile, at: Question, rows: Sequence[Row], theorems: Sequence[str]
) -> Sheet:
    """Return one line for each accountant that has an answer; with -v, why others have none."""
    sheet, truth = _asked(file, at), Truth.of(rows)
    found = table("accountant", "kind", f">{at.quantity}", "next to truth", ">time")
    for row in rows:
        if row.answer is not None:
            value = quoted(row.answer)
            rounded = at_most if isinstance(row.answer, Certified) else nearest
            alike = value <= truth.upper or truth.looks_equal(value)
            style = "bold red" if truth.is_above(value) else "green" if alike else "yellow"
            found.add_row(
                row.accountant,
                Text(row.kind, KIND_STYLES[row.kind]),
                Text(rounded(value), "bold"),
                Text(truth.beside(row.answer), style),
                Text(seconds(row.seconds), "dim"),
            )
    sheet.block(found)
    sheet.more_of(
        "In full", [f"{row.accountant}: {row.answer}" for row in rows if row.answer is not None]
    )
    sheet.more_of(
        "No answer", [f"{row.accountant}: {row.reason}" for row in rows if row.answer is None]
    )
    sheet.more_of("Sources", theorems)
    return sheet


def _samplings(file: PlanFile, at: Question, rows: Sequence[SamplingRow]) -> Sheet:
    """Return one line for each adjacency and sampling that has an answer; with -v for each."""
    sheet = _asked(file, at)
    found = table("adjacency", "sampling", f">{at.quantity}", "proven", ">time")
    for row in rows:
        if row.answer is not None:
            low, high = row.answer.lower, row.answer.upper
            number = Text(headline(low, high), "bold")
            proven = between(low, high) if high < math.inf else "no upper end"
            time = Text(seconds(row.seconds), "dim")
            found.add_row(row.adjacency, row.sampling, number, proven, time)
    sheet.block(found)
    none = [row for row in rows if row.answer is None]
    sheet.more_of("No answer", [f"{one.sampling}, {one.adjacency}: {one.reason}" for one in none])
    return sheet


_NEEDED: Final = {"ApproxDP": ("delta", "epsilon"), "TCDP": ("omega",), "RenyiDP": ("orders",)}
_READ_AT: Final = (0.1, 0.01, 0.001)
# How near to few digits a number is shown with all that it has: 0.5000000000000001.
_ROUND_OFF: Final = 1e-12
_ALL_DIGITS: Final = 16


@final
@dataclass(frozen=True, slots=True)
class _Conversion:
    """What was converted, into what, and why it holds."""

    plan: Mechanism
    asked: tuple[str, ...]
    result: Notion
    lower: tuple[float, ...] = ()

    @property
    def kind(self) -> str:
        """Whether the result is exact or a bound."""
        return "bound" if self.result.origin is None else self.result.origin.kind

    @property
    def theorem(self) -> str:
        """Why the result holds, and for a group why that is the group's."""
        found = "" if self.result.origin is None else self.result.origin.theorem
        return f"{found}; {self.plan.theorem}" if isinstance(self.plan, OfGroup) else found

    @property
    def numbers(self) -> dict[str, Any]:
        """The parameters of the guarantee, ready for JSON."""
        if isinstance(self.result, RenyiDP):
            pairs = [[order, jsonable(size)] for order, size in self.result.divergences]
            return {"divergences": pairs}
        if isinstance(self.result, FDP):
            f = self.result.tradeoff
            missed = [{"fpr": fpr, "fnr_lower": f(fpr)} for fpr in _READ_AT]
            return {"tradeoff": type(f).__name__, "rates": missed}
        names = ("epsilon", "delta", "mu", "rho", "omega")
        held = [name for name in names if hasattr(self.result, name)]
        return {name: jsonable(getattr(self.result, name)) for name in held}

    @property
    def found(self) -> list[float]:
        """The numbers of the result that were not given, each true of whatever is larger."""
        if isinstance(self.result, RenyiDP):
            return [size for _, size in self.result.divergences]
        numbers = {} if isinstance(self.result, FDP) else self.numbers
        return [float(value) for name, value in numbers.items() if name not in self.asked]

    @property
    def least(self) -> dict[str, Any] | None:
        """The proven lower ends of what was asked for, by their names; None where none are."""
        if not self.lower:
            return None
        if isinstance(self.result, RenyiDP):
            pairs = zip(self.result.divergences, self.lower, strict=True)
            return {"divergences": [[order, jsonable(low)] for (order, _), low in pairs]}
        ends = zip(self.numbers, self.lower, strict=False)
        return {name: jsonable(low) for name, low in ends if name not in self.asked}

    def as_dict(self) -> dict[str, Any]:
        """Return the same, ready for JSON."""
        return {
            "to": type(self.result).__name__,
            "result": self.numbers,
            "lower": self.least,
            "kind": self.kind,
            "theorem": self.theorem,
            "cautions": listed(conversion_cautions(self.result, self.plan, self.lower)),
        }

    @property
    def says(self) -> str:
        """The numbers of the guarantee: rounded up, but what was given as it was."""
        if isinstance(self.result, RenyiDP):
            pairs = self.result.divergences
            return ", ".join(
                f"tau {_quoted(size)} at order {plain(order)}" for order, size in pairs
            )
        if isinstance(self.result, FDP):
            return ", ".join(
                f"f({plain(one['fpr'])}) at least {at_least(one['fnr_lower'])}"
                for one in self.numbers["rates"]
            )
        numbers = self.numbers.items()
        found = [f"{name} {_quoted(float(x))}" for name, x in numbers if name not in self.asked]
        at = [f"{name} = {x}" for name, x in numbers if name in self.asked]
        return ", ".join(found) + (f" at {', '.join(at)}" if at else "")

    @property
    def proven(self) -> str:
        """The proven ends of what was asked for; nothing where there is no number."""
        least: Any = self.least or {}
        lows = (
            [low for _, low in least["divergences"]] if "divergences" in least else least.values()
        )
        pairs = zip(lows or [0.0] * len(self.found), self.found, strict=True)
        return "; ".join(_ends(float(low), high) for low, high in pairs)


def _ends(lower: float, upper: float) -> str:
    """Return an interval in words; the upper end alone where no lower is known."""
    if lower == 0.0 < upper:
        return f"at most {_quoted(upper)}"
    low, high = interval(lower, upper)
    return f"exactly {low}" if low == high else f"from {low} to {high}"


def _quoted(value: float) -> str:
    """Return a number rounded up; as it is, where it is by round-off above few digits."""
    few = float(nearest(value))
    is_off = value != few and abs(value - few) <= _ROUND_OFF * value < math.inf
    return at_most(value, _ALL_DIGITS if is_off else HEADLINE_DIGITS)


@command(
    "hockeystick convert 'ZCDP(rho=0.5)' --to ApproxDP --delta 1e-6",
    "hockeystick convert 'RenyiDP({2: 0.5, 8: 1.9})' --to ApproxDP --epsilon 2",
    takes="PLAN to epsilon delta orders group short json verbose",
)
def convert(
    words: tuple[str, ...], to: str | None, orders: str | None, group: Any, **numbers: Any
) -> None:
    """Convert to other notions of differential privacy.

    PLAN is a notion, such as 'ZCDP(rho=0.5)' or 'RenyiDP({2: 0.5, 8: 1.9})', or any plan. Every
    number is rounded to the safe side. ApproxDP needs --delta or --epsilon, TCDP and RenyiDP
    --orders.
    """
    is_short = options.is_given("short")
    options.refuse_beside_short()
    if is_short and to is None:
        raise click.UsageError("--short prints one number: it needs --to")
    source, values = plans.read(words)
    file = for_group(plans.plan_file(source, values), group)
    # A notion that is written out is as it is; of a plan it is assumed that it ran.
    is_stated = source is not None and source.content is None and isinstance(file.plan, Notion)
    assumptions = () if is_stated else assumptions_of(file.plan)
    given = {name: value for name, value in numbers.items() if value is not None}
    if orders is not None:
        given["orders"] = [parse(one.strip()) for one in orders.strip("[]()").split(",")]
    if orders is not None and to in (None, "TCDP"):
        given["omega"] = parse(orders)
        given = given if to is None else {"omega": given["omega"]}
    found = _to_all(file, given) if to is None else {to: _converted(file, to, given, not is_short)}
    if is_short:
        print_short(_one_number(next(iter(found.values()))))
        return
    rows = [
        one.as_dict() if isinstance(one, _Conversion) else {"to": name, "none": one}
        for name, one in found.items()
    ]
    show(
        lambda: {
            "version": hs.__version__,
            "title": file.title,
            "from": str(file.plan),
            **(rows[0] if to is not None else {"conversions": rows}),
            "adjacency": file.plan.adjacency,
            "assumptions": list(assumptions),
        },
        lambda: _conversions(file, found, assumptions, alone=to is not None),
    )


def _to_all(file: PlanFile, given: dict[str, Any]) -> dict[str, _Conversion | str]:
    """Return what every notion says, or why one says nothing."""
    found: dict[str, _Conversion | str] = {}
    for to in TARGETS:
        its = {name: value for name, value in given.items() if name in _NEEDED.get(to, ())}
        try:
            found[to] = _converted(file, to, its, with_lower=True)
        except (click.UsageError, IncompatibleError, UnsupportedError) as error:
            found[to] = str(error)
    return found


def _converted(file: PlanFile, to: str, given: dict[str, Any], with_lower: bool) -> _Conversion:
    """Return the conversion to one notion, or raise where there is none."""
    needed = _NEEDED.get(to, ())
    if to == "ApproxDP" and given.keys().isdisjoint(needed):
        told = {name: getattr(file, name) for name in needed}
        given |= dict([(name, value) for name, value in told.items() if value is not None][:1])
    if needed and given.keys().isdisjoint(needed):
        flags = " or ".join(f"--{name}" for name in needed).replace("omega", "orders")
        raise click.UsageError(f"{to} needs {flags}")
    with progress(f"converting to {to}"):
        result = hs.convert(file.plan, to, **given)
        lower = lower_ends(file.plan, result) if with_lower else ()
    return _Conversion(file.plan, tuple(given), result, lower)


def _one_number(conversion: Any) -> str:
    """Return the one number that was not given, rounded up, or raise where there are several."""
    numbers = conversion.found
    if len(numbers) != 1:
        many = f"this {type(conversion.result).__name__} has {len(numbers) or 'none'}"
        raise click.UsageError(f"--short prints one number, and {many}")
    return at_most(numbers[0])


def _conversions(
    file: PlanFile,
    found: Mapping[str, _Conversion | str],
    assumptions: tuple[str, ...],
    *,
    alone: bool,
) -> Sheet:
    """Return one line for each notion that says something; with -v, why, and why others do not."""
    sheet, rows = Sheet(file.title), table("notion", "says", "proven", "kind")
    known = {name: one for name, one in found.items() if isinstance(one, _Conversion)}
    for name, one in known.items():
        says, kind = Text(one.says, "bold green"), Text(one.kind, KIND_STYLES[one.kind])
        rows.add_row(name, says, one.proven, kind)
        for label, text in (("says", says), ("proven", one.proven), ("kind", kind)):
            if alone and text:
                sheet.fact(label, text)
    sheet.plan(file, file.plan.adjacency)
    if not alone:
        sheet.block(rows)
    for one in known.values() if alone or sheet.is_verbose else ():
        sheet.cautions(conversion_cautions(one.result, one.plan, one.lower))
    reasons = {name: getattr(one, "theorem", one) for name, one in found.items()}
    sheet.more_of("Why, or why not", [f"{name}: {why}" for name, why in reasons.items()])
    sheet.holds_if(assumptions)
    return sheet
