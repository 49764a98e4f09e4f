"""The commands ``epsilon``, ``delta``, ``compare`` and ``convert``: what a plan costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click
from rich.text import Text

import hockeystick as hs
from hockeystick.accountants import Answer
from hockeystick.accountants.comparison import Truth, quoted
from hockeystick.accountants.limits import GaussianLimit
from hockeystick.accountants.rdp import RDP
from hockeystick.cli import options, plans, show
from hockeystick.cli.command import command
from hockeystick.cli.progress import progress, seconds
from hockeystick.cli.verify import end_with, verdict_of
from hockeystick.io import PlanFile, parse
from hockeystick.mechanisms import assumptions_of
from hockeystick.notions import Notion
from hockeystick.numerics.numerals import at_least, at_most, headline, nearest, plain


@command(
    "hockeystick epsilon 'Laplace(2)**3 @ Gaussian(4)' --delta 1e-6",
    "hockeystick epsilon plan.toml epochs=30 --at-most 3",
    "hockeystick epsilon rate=0.004 steps=14000 noise_multiplier=1.1 --delta 1e-5",
    takes="PLAN group delta at_most accountant tolerance digits verify short json verbose",
)
def epsilon(words: tuple[str, ...], group: Any, delta: Any, **how: Any) -> None:
    """Print the epsilon that a plan costs at a delta."""
    _answer({"delta": delta}, words, group, **how)


@command(
    "hockeystick delta 'Laplace(2)**3 @ Gaussian(4)' --epsilon 2",
    "hockeystick delta plan.toml --epsilon 3 --at-most 1e-5",
    takes="PLAN group epsilon at_most accountant tolerance digits verify short json verbose",
)
def delta(words: tuple[str, ...], group: Any, epsilon: Any, **how: Any) -> None:
    """Print the delta that a plan costs at an epsilon."""
    _answer({"epsilon": epsilon}, words, group, **how)


def _answer(
    flag: dict[str, Any],
    words: tuple[str, ...],
    group: Any,
    *,
    at_most: Any,
    verify: bool,
    **how: Any,
) -> None:
    """Print the answer to one question, and what the verifier says of it."""
    options.check_forms(verify)
    file = plans.plan_of(words, group)
    at = options.question(file, **flag)
    limit = options.budget_of(at_most, at.quantity)
    given = {name: value for name, value in how.items() if value is not None}
    ask: Any = hs.epsilon if at.quantity == "epsilon" else hs.delta
    with progress(f"computing {at.quantity}"):
        answer = ask(file.plan, **at.asked, **given)
        options.refuse_infinite(at, answer)
        budget = None if limit is None else options.decided(answer, file.plan, at, limit)
    verdict = verdict_of(answer, file.plan, **at.asked) if verify else None
    found = hs.answers.cautions(answer, file.plan, **at.asked)
    if options.is_given("short"):
        _print_short(answer, found)
    else:
        besides = {} if budget is None else {"budget": budget}
        told = _told(file, at, answer, {**besides, "cautions": found})
        told |= {"verification": show.verdict_fields(verdict)} if verdict else {}
        show.answer(told, file, _facts(at, answer, budget))
    meets = budget is None or budget["decision"] is hs.answers.Decision.MEETS
    end_with(verdict, otherwise=0 if meets else options.MISSED)


def _print_short(answer: Answer, found: Sequence[hs.answers.Caution]) -> None:
    """Print the number to quote alone, and on standard error what is grave."""
    if not isinstance(answer, hs.Certified):
        raise click.UsageError(f"--short prints what is proven; {answer.accountant} proves nothing")
    show.print_short(at_most(answer.upper), *(f"caution: {x.text}" for x in found if not x.is_mild))


def _about(file: PlanFile, at: options.Question) -> dict[str, Any]:
    """Return what is asked of which plan, ready for JSON."""
    return show.heading(file, quantity=at.quantity, at=at.asked)


def _told(
    file: PlanFile, at: options.Question, answer: Answer, besides: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the answer ready for JSON; what is proven, as a document to check."""
    if not isinstance(answer, hs.Certified):
        told = {**_about(file, at), **answer.as_dict()}
    else:
        document = hs.answers.document(answer, file.plan, **at.asked)
        told = {"schema": hs.answers.SCHEMA, **_about(file, at), **document}
    told |= {**besides, "sources": hs.answers.sources(file.plan, answer.accountant)}
    if answer.accountant == GaussianLimit.name:
        told["mu"] = hs.accountants.central_limit_mu(file.plan).value
    if answer.accountant == RDP.name and answer.quantity == "epsilon":
        told["order"] = hs.accountants.best_order(file.plan, at.value)
    return told


def _facts(
    at: options.Question, answer: Answer, budget: Mapping[str, Any] | None
) -> Iterator[tuple[str, str | Text]]:
    """Yield the answer for people."""
    number, proven = _words(answer)
    is_proven = isinstance(answer, hs.Certified) and answer.upper < math.inf
    styled = number, "bold green" if is_proven else "bold red"
    yield answer.quantity, Text.assemble(styled, f" at {at.name} = {plain(at.value)}")
    if budget is not None:
        but = f", but {budget['reservation']}" if budget["reservation"] else ""
        limit = f"{answer.quantity} at most {plain(budget['at_most'])}"
        yield "budget", f"{budget['decision']}: {limit}{but}"
    yield "proven", proven


def _words(answer: Answer) -> tuple[str, str]:
    """Return the number to quote of an answer, and what is proven."""
    if not isinstance(answer, hs.Certified):
        return f"about {nearest(answer.value)}", "nothing: this is an approximation, no guarantee"
    return headline(answer.lower, answer.upper), show.between(answer.lower, answer.upper)


@command(
    "hockeystick compare 'Gaussian(4) @ Laplace(2)**3' --delta 1e-6",
    "hockeystick compare plan.toml noise_multiplier=1.3",
    takes="PLAN samplings group delta epsilon json verbose",
)
def compare(words: tuple[str, ...], samplings: bool, group: Any, **flags: Any) -> None:
    """Print what each accountant says of a plan."""
    file = plans.plan_of(words, group)
    at = options.question(file, **flags)
    plan: Any = file.plan
    with progress("comparing") as tell:
        if samplings:
            rows: Any = hs.accountants.compare_samplings(plan, **at.asked, progress=tell)
        else:
            rows = hs.compare(plan, **at.asked)
            options.refuse_infinite(at, *(row.answer for row in rows))
    names = ("sampling", "adjacency") if samplings else ("accountant", "kind")
    truth = None if samplings else Truth.of(rows)
    told = _about(file, at) | {f"{names[0]}s": [_row(row, names, truth) for row in rows]}
    if truth:
        told["proven"] = {"lower": truth.lower, "upper": truth.upper}
        told["sources"] = hs.answers.sources_of_all(plan, rows)
    heading = "next to truth" if truth else "proven"
    found = show.table(*names, f">{at.quantity}", heading, ">time")
    reasons = []
    for row in rows:
        first, second = (getattr(row, name) for name in names)
        if row.answer is None:
            reasons.append(f"{first}, {second}: {row.reason}")
        else:
            number, proven = _words(row.answer)
            beside = truth.beside(row.answer) if truth else proven
            found.add_row(first, second, number, beside, seconds(row.seconds))
    question = f"{at.quantity} at {at.name} = {plain(at.value)}"
    show.answer(told, file, [("question", question)], found, more={"no answer": reasons})


def _row(row: Any, names: tuple[str, str], truth: Truth | None) -> dict[str, Any]:
    told = {name: getattr(row, name) for name in (*names, "seconds")}
    told |= {"answer": None, "reason": row.reason or None}
    if row.answer is not None:
        told["answer"] = row.answer.as_dict()
    if truth and row.answer is not None:
        value = quoted(row.answer)
        told["ratio_to_proven_upper"] = truth.ratio(value)
        told["below_the_truth"] = truth.is_above(value)
    return told


_NEEDED: Final = {"ApproxDP": ("delta", "epsilon"), "TCDP": ("omega",), "RenyiDP": ("orders",)}
_READ_AT: Final = (0.1, 0.01, 0.001)


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
    options.check_forms()
    is_short = options.is_given("short")
    if is_short and to is None:
        raise click.UsageError("--short prints one number: it needs --to")
    source, values = plans.read(words)
    file = plans.for_group(source.file(values), group)
    # A notion that is written out is as it is; of a plan it is assumed that it ran.
    is_stated = source.content is None and isinstance(file.plan, Notion)
    assumptions = () if is_stated else assumptions_of(file.plan)
    given = {name: value for name, value in numbers.items() if value is not None}
    if orders is not None and to != "TCDP":
        given["orders"] = [parse(one.strip()) for one in orders.strip("[]()").split(",")]
    if orders is not None and to in (None, "TCDP"):
        given["omega"] = parse(orders)
    found = [_converted(file, to, given)] if to else _to_all(file, given)
    if is_short:
        show.print_short(_one_number(found[0]["result"], given))
        return
    told = {
        "version": hs.__version__,
        "title": file.title,
        "from": str(file.plan),
        **(found[0] if to else {"conversions": found}),
        "adjacency": file.plan.adjacency,
        "assumptions": assumptions,
    }
    facts = [(one["to"], _says(one)) for one in found if "none" not in one]
    because = [f"{one['to']}: {one.get('none') or one['theorem']}" for one in found]
    show.answer(told, file, facts, more={"because": because})


def _to_all(file: PlanFile, given: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what every notion says, or why one says nothing."""
    found: list[dict[str, Any]] = []
    for to in hs.conversions.TARGETS:
        its = {name: value for name, value in given.items() if name in _NEEDED.get(to, ())}
        try:
            found.append(_converted(file, to, its))
        except (click.UsageError, hs.errors.IncompatibleError, hs.errors.UnsupportedError) as error:
            found.append({"to": to, "none": str(error)})
    return found


def _converted(file: PlanFile, to: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return what one notion says, ready for JSON, or raise where it says nothing.

    What is needed and not given is taken from the file.
    """
    needed = _NEEDED.get(to, ())
    for name in needed if to == "ApproxDP" else ():
        if given.keys().isdisjoint(needed) and getattr(file, name) is not None:
            given[name] = getattr(file, name)
    if needed and given.keys().isdisjoint(needed):
        flags = " or ".join(f"--{name}" for name in needed).replace("omega", "orders")
        raise click.UsageError(f"{to} needs {flags}")
    with progress(f"converting to {to}"):
        result = hs.convert(file.plan, to, **given)
        lower = hs.conversions.lower_ends(file.plan, result)
    numbers, origin = _numbers(result), result.origin
    pairs: Any = numbers.get("divergences") or numbers.items()
    ends = zip(pairs, lower, strict=False)
    least: Any = [[name, low] for (name, _), low in ends if name not in given]
    least = {"divergences": least} if isinstance(result, hs.RenyiDP) else dict(least)
    theorems = [origin.theorem] if origin else []
    theorems += [file.plan.theorem] if isinstance(file.plan, plans.OfGroup) else []
    return {
        "to": type(result).__name__,
        "result": numbers,
        "lower": least if lower else None,
        "kind": origin.kind if origin else "bound",
        "theorem": "; ".join(theorems),
        "cautions": hs.answers.conversion_cautions(result, file.plan, lower),
    }


def _numbers(result: Notion) -> dict[str, Any]:
    """Return the parameters of a guarantee, ready for JSON."""
    if isinstance(result, hs.RenyiDP):
        return {"divergences": result.divergences}
    if isinstance(result, hs.FDP):
        f = result.tradeoff
        rates = [{"fpr": fpr, "fnr_lower": f(fpr)} for fpr in _READ_AT]
        return {"tradeoff": type(f).__name__, "rates": rates}
    names = ("epsilon", "delta", "mu", "rho", "omega")
    return {name: getattr(result, name) for name in names if hasattr(result, name)}


def _flat(held: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return numbers by their names, divergences by their orders."""
    if "divergences" not in held:
        return held
    return {f"tau at order {plain(order)}": size for order, size in held["divergences"]}


def _one_number(result: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Return the one number that was not given, rounded up, or raise where there are several."""
    found = [one for name, one in _flat(result).items() if name not in given]
    if len(found) != 1:
        raise click.UsageError(f"--short prints one number, not {len(found)}")
    return at_most(found[0])


def _says(one: Mapping[str, Any]) -> str:
    """Return the numbers of a guarantee, each on its safe side, and their proven lower ends."""
    numbers, lower = _flat(one["result"]), _flat(one["lower"] or {})
    least = {name: f" (at least {at_least(low)})" for name, low in lower.items()}
    if "rates" in numbers:
        rates = ((plain(rate["fpr"]), at_least(rate["fnr_lower"])) for rate in numbers["rates"])
        found = [f"f({fpr}) at least {fnr}" for fpr, fnr in rates]
    else:
        found = [f"{name} {at_most(x)}{least.get(name, '')}" for name, x in numbers.items()]
    return f"{', '.join(found)}; {one['kind']}"
