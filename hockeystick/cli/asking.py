"""The commands that ask about plans, and the one that asks about attacks: ``audit``."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click
from rich.text import Text

import hockeystick as hs
from hockeystick import _validate
from hockeystick.accountants import Answer
from hockeystick.accountants.comparison import Truth, quoted
from hockeystick.accountants.limits import GaussianLimit
from hockeystick.accountants.rdp import RDP
from hockeystick.answers.cautions import reservation
from hockeystick.calibration.solve import fields
from hockeystick.calibration.solve.targets import Target, constraint_of
from hockeystick.cli import options, show
from hockeystick.cli.command import command
from hockeystick.cli.options import OfGroup, Source
from hockeystick.cli.show import progress
from hockeystick.conversions.convert import PARAMETERS
from hockeystick.io.call_text import parse
from hockeystick.io.codec import Blanks
from hockeystick.io.plan_file import PlanFile, plan_text
from hockeystick.mechanisms import assumptions_of
from hockeystick.notions import Notion
from hockeystick.numerics.numerals import at_least, at_most, headline, nearest, plain
from hockeystick.tradeoffs.attack_words import attack_in_words
from hockeystick.tradeoffs.plot import FORMATS, FPR, plot, require_matplotlib

if TYPE_CHECKING:
    from hockeystick.verifier import Verdict


@command(
    "hockeystick epsilon 'Laplace(2)**3 @ Gaussian(4)' --delta 1e-6",
    "hockeystick epsilon plan.toml epochs=30 --at-most 3",
    "hockeystick epsilon rate=0.004 steps=14000 noise_multiplier=1.1 --delta 1e-5",
    takes="PLAN group delta at_most accountant tolerance digits verify short json verbose",
)
def epsilon(given: Source, delta: Any, **how: Any) -> None:
    """Print the epsilon that a plan costs at a delta."""
    _answer(given, {"delta": delta}, **how)


@command(
    "hockeystick delta 'Laplace(2)**3 @ Gaussian(4)' --epsilon 2",
    "hockeystick delta plan.toml --epsilon 3 --at-most 1e-5",
    takes="PLAN group epsilon at_most accountant tolerance digits verify short json verbose",
)
def delta(given: Source, epsilon: Any, **how: Any) -> None:
    """Print the delta that a plan costs at an epsilon."""
    _answer(given, {"epsilon": epsilon}, **how)


def _answer(given: Source, flag: dict[str, Any], verify: bool, **how: Any) -> None:
    options.check_forms(verify)
    file = given.file()
    at = options.question(file, **flag)
    limit = options.limit_of(how.pop("at_most"), at.quantity)
    answer = ask(file, at, **{name: value for name, value in how.items() if value is not None})
    budget, said, status = budgeted(answer, file.plan, at, limit)
    found = hs.answers.cautions(answer, file.plan, **at.asked)
    if options.is_given("short"):
        if not isinstance(answer, hs.Certified):
            by = answer.accountant
            raise click.UsageError(f"--short prints what is proven; {by} proves nothing")
        grave = [f"caution: {one.text}" for one in found if not one.is_mild]
        show.print_short(at_most(answer.upper), *grave, status=status)
    told = {**_told(file, at, answer), "cautions": found}
    told |= {} if budget is None else {"budget": budget}
    number, proven = _words(answer)
    is_proven = isinstance(answer, hs.Certified) and answer.upper < math.inf
    styled = number, "bold green" if is_proven else "bold red"
    facts: list[show.Fact] = [
        (answer.quantity, Text.assemble(styled, f" at {at.name} = {plain(at.value)}")),
        ("budget", said),
        ("proven", proven),
    ]
    verdict = verdict_of(answer, file.plan, **at.asked) if verify else None
    show.answer(told, facts, file=file, cautions=found, verdict=verdict, status=status)


def ask(file: PlanFile, at: options.Question, **how: Any) -> Any:
    """Return the answer to a question, with a sign of life while it is computed."""
    with progress(f"computing {at.quantity}"):
        answer = getattr(hs, at.quantity)(file.plan, **at.asked, **how)
    options.refuse_infinite(at, answer)
    return answer


def budgeted(
    answer: Answer, plan: hs.Mechanism, at: options.Question, limit: float | None
) -> tuple[dict[str, Any] | None, str, int]:
    """Return whether an answer is within a budget, for programs and in words; the exit status."""
    if limit is None:
        return None, "", 0
    if not isinstance(answer, hs.Certified):
        by, quantity = answer.accountant, answer.quantity
        raise click.UsageError(f"--at-most needs a proven {quantity}: {by} only approximates it")
    decision = hs.answers.decide(answer, limit)
    meets = decision is hs.answers.Decision.MEETS
    delta = float(answer.upper if answer.quantity == "delta" else at.value)
    little = reservation(delta, hs.answers.units_of(plan)) if meets else ""
    but = f", but {little}" if little else ""
    words = f"{decision}: {answer.quantity} at most {plain(limit)}{but}"
    told = {"at_most": limit, "decision": decision, "reservation": little or None}
    return told, words, int(not meets)


def verdict_of(answer: Any, *plan: hs.Mechanism, **asked: Any) -> Verdict:
    """Return what the verifier says of an answer, with a sign of life while it computes."""
    with progress("verifying"):
        return hs.verify(answer, *plan, **asked)


def _told(file: PlanFile, at: options.Question, answer: Answer) -> dict[str, Any]:
    told = show.heading(file, quantity=at.quantity, at=at.asked)
    if isinstance(answer, hs.Certified):
        told |= hs.answers.document(answer, file.plan, **at.asked)
    else:
        told |= answer.as_dict()
    told["sources"] = hs.answers.sources(file.plan, answer.accountant)
    if answer.accountant == GaussianLimit.name:
        told["mu"] = hs.accountants.central_limit_mu(file.plan).value
    if answer.accountant == RDP.name and answer.quantity == "epsilon":
        told["order"] = hs.accountants.best_order(file.plan, at.value)
    return told


def _words(answer: Answer) -> tuple[str, str]:
    """Return the number to quote of an answer, and what is proven."""
    if not isinstance(answer, hs.Certified):
        return f"about {nearest(answer.value)}", "nothing: this is an approximation, no guarantee"
    ends = answer.lower, answer.upper
    return f"at most {headline(*ends)}", show.between(*ends)


@command(
    "hockeystick epsilon 'Gaussian(4)' --delta 1e-6 --json > answer.json",
    "hockeystick verify answer.json",
    takes="FILE json verbose",
)
def verify(file: str) -> None:
    """Have an answer verified by a second program.

    FILE is what epsilon, delta or solve printed with --json, a report, or - for standard input. The
    second program has its own definitions, shares no code with the first, and computes in ball
    arithmetic (extra verify). Of a report, its visible text is not looked at.

    Exit status 0: verified. 1: refuted. 3: not covered, which says nothing about the answer.
    """
    hs.answers.require_verifier()
    held = options.standard_input() if file == options.STDIN else Path(file)
    text = hs.answers.load_answer(held)
    verdict = verdict_of(text)
    facts = [("file", file), ("answer inside", _claim(json.loads(text)))]
    told = {"version": hs.__version__, "file": file, **show.verdict_fields(verdict)}
    show.answer(told, facts, verdict=verdict)


def _claim(told: dict[str, Any]) -> str:
    if "parameter" in told:
        return f"{told['parameter']} = {told.get('value')} meets {told.get('target')}"
    asked = ", ".join(f"{name} = {value}" for name, value in told.get("at", {}).items())
    lower, upper = told.get("lower"), told.get("upper")
    most = at_most(upper) if isinstance(upper, float) else upper
    return f"{told.get('quantity')} at most {most} at {asked}, proven from {lower} to {upper}"


@command(
    "hockeystick compare 'Gaussian(4) @ Laplace(2)**3' --delta 1e-6",
    "hockeystick compare plan.toml noise_multiplier=1.3",
    takes="PLAN group delta epsilon json verbose",
)
def compare(given: Source, **flags: Any) -> None:
    """Print what each accountant says of a plan."""
    file = given.file()
    at = options.question(file, **flags)
    with progress("comparing"):
        rows = hs.compare(file.plan, **at.asked)
        options.refuse_infinite(at, *(row.answer for row in rows))
    truth = Truth.of(rows)
    found = show.empty_table("accountant", "kind", f">{at.quantity}", "next to truth", ">time")
    every: list[dict[str, Any]] = []
    reasons: list[show.Fact] = []
    for row in rows:
        told = {name: getattr(row, name) for name in ("accountant", "kind", "seconds")}
        every.append({**told, "answer": None, "reason": row.reason or None})
        if row.answer is None:
            reasons.append(("no answer", f"{row.accountant}, {row.kind}: {row.reason}"))
            continue
        value = quoted(row.answer)
        every[-1] |= {
            "answer": row.answer.as_dict(),
            "ratio_to_proven_upper": truth.ratio(value),
            "below_the_truth": value < truth.lower,
        }
        number = _words(row.answer)[0].removeprefix("at most ")
        cells = number, truth.beside(row.answer), f"{row.seconds:.3f} s"
        found.add_row(row.accountant, row.kind, *cells)
    whole = {
        **show.heading(file, quantity=at.quantity, at=at.asked),
        "accountants": every,
        "proven": {"lower": truth.lower, "upper": truth.upper},
        "sources": hs.answers.sources_of_all(file.plan, rows),
    }
    question = f"{at.quantity} at {at.name} = {plain(at.value)}"
    show.answer(whole, [("question", question)], found, file=file, more=reasons)


@command(
    "hockeystick convert 'ZCDP(rho=0.5)' --to ApproxDP --delta 1e-6",
    "hockeystick convert 'RenyiDP({2: 0.5, 8: 1.9})' --to ApproxDP --epsilon 2",
    takes="PLAN to epsilon delta orders group json verbose",
)
def convert(given: Source, to: str, orders: str | None, **numbers: Any) -> None:
    """Convert to another notion of differential privacy.

    PLAN is a notion, such as 'ZCDP(rho=0.5)' or 'RenyiDP({2: 0.5, 8: 1.9})', or any plan. Numbers
    are rounded to the safe side. ApproxDP needs --delta or --epsilon, TCDP and RenyiDP --orders.
    """
    file, needed = given.file(), PARAMETERS.get(to, ())
    asked = {name: value for name, value in numbers.items() if value is not None}
    if orders is not None and to == "TCDP":
        asked["omega"] = parse(orders)
    elif orders is not None:
        asked["orders"] = [parse(one.strip()) for one in orders.strip("[]()").split(",")]
    for name in needed:  # what is not given is the file's
        held = getattr(file, name, None)
        if asked.keys().isdisjoint(needed) and held is not None:
            asked[name] = held
    if needed and asked.keys().isdisjoint(needed):
        flags = " or ".join(f"--{name}" for name in needed).replace("omega", "orders")
        raise click.UsageError(f"{to} needs {flags}")
    with progress(f"converting to {to}"):
        result = hs.convert(file.plan, to, **asked)
        lower = hs.conversions.lower_ends(file.plan, result)
    numbers, origin = _numbers(result), result.origin
    pairs: Any = numbers.get("divergences") or numbers.items()
    ends = zip(pairs, lower, strict=False)
    least: Any = [[name, low] for (name, _), low in ends if name not in asked]
    least = {"divergences": least} if isinstance(result, hs.RenyiDP) else dict(least)
    # A notion that is written out is as it is; of a plan it is assumed that it ran.
    is_stated = given.content is None and isinstance(file.plan, Notion)
    told: dict[str, Any] = {
        "version": hs.__version__,
        "title": file.title,
        "from": str(file.plan),
        "to": type(result).__name__,
        "result": numbers,
        "lower": least if lower else None,
        "kind": origin.kind if origin else "bound",
        "theorem": origin.theorem if origin else "",
        "cautions": hs.answers.conversion_cautions(result, file.plan, lower),
        "adjacency": file.plan.adjacency,
        "assumptions": () if is_stated else assumptions_of(file.plan),
    }
    because = [("because", told["theorem"])]
    show.answer(told, _said(told, asked), file=file, cautions=told["cautions"], more=because)


def _numbers(result: Notion) -> dict[str, Any]:
    if isinstance(result, hs.RenyiDP):
        return {"divergences": result.divergences}
    if isinstance(result, hs.FDP):
        f = result.tradeoff
        rates = [{"fpr": fpr, "fnr_lower": f(fpr)} for fpr in (0.1, 0.01, 0.001)]
        return {"tradeoff": type(f).__name__, "rates": rates}
    names = ("epsilon", "delta", "mu", "rho", "omega")
    return {name: getattr(result, name) for name in names if hasattr(result, name)}


def _flat(held: Mapping[str, Any]) -> Mapping[str, Any]:
    if "divergences" not in held:
        return held
    return {f"tau at order {plain(order)}": size for order, size in held["divergences"]}


def _said(told: Mapping[str, Any], asked: Mapping[str, Any]) -> list[show.Fact]:
    """Return the numbers of a guarantee, each on its safe side, and where the least ones lie."""
    numbers, lower = _flat(told["result"]), _flat(told["lower"] or {})
    if "rates" in numbers:
        rates = ((plain(rate["fpr"]), at_least(rate["fnr_lower"])) for rate in numbers["rates"])
        found = [f"f({fpr}) at least {fnr}" for fpr, fnr in rates]
    else:
        texts = {name: plain(x) if name in asked else at_most(x) for name, x in numbers.items()}
        found = [f"{name} {text}" for name, text in texts.items()]
    proven = (f"{name} {show.between(low, numbers[name])}" for name, low in lower.items())
    return [(told["to"], f"{', '.join(found)}; {told['kind']}"), ("proven", ", ".join(proven))]


_ATTACKS: Final = {
    name: getattr(hs.calibration, name)
    for name in ("Advantage", "TruePositiveRate", "BayesError", "Reconstruction")
}


@command(
    "hockeystick solve 'Laplace()**10 @ Gaussian(4)' --epsilon 2 --delta 1e-6",
    "hockeystick solve rate=0.004 steps=14000 --epsilon 2 --delta 1e-5",
    "hockeystick solve plan.toml --parameter epochs --whole --epsilon 2 -o shorter.toml",
    takes="PLAN parameter epsilon delta target whole group tolerance accountant out force "
    "verify short json verbose",
    epsilon="Meet this epsilon; by default the plan file's.",
    delta="The delta of --epsilon; by default the plan file's.",
    out="Write the solved plan: a new .toml file.",
)
def solve(
    given: Source,
    parameter: str | None,
    out: str | None,
    force: bool,
    verify: bool,
    epsilon: Any,
    delta: Any,
    target: str | None,
    **how: Any,
) -> None:
    """Print the value of one parameter that just meets a target.

    It is on the safe side: the plan with it meets the target by a proven bound, and the next value,
    one tolerance step on, provably does not unless the answer says otherwise. By default the number
    is the one that the plan leaves out. Epochs may be a fraction unless --whole is given.
    """
    options.check_forms(verify)
    path = None if out is None else show.out_path(out, (".toml",), force)
    file, name, is_given = _unknown_of(given, parameter)
    is_group, is_short = isinstance(file.plan, OfGroup), options.is_given("short")
    if verify and is_group:
        raise click.UsageError("--verify does not know what is solved for a group: leave it out")
    if path is not None:
        plan_text(options.for_one(file))  # what no file can hold is refused before the work
    aim, planned = _aim(file, epsilon, delta, target), None
    with progress(f"solving for {name}"):
        asked = {name: value for name, value in how.items() if value is not None}
        found = hs.calibrate(file.plan, name, aim, **asked)
        if is_given and not is_short:
            planned = _as_planned(file.plan, name, aim, how["accountant"])
    verdict = verdict_of(found) if verify else None
    stated = aim if isinstance(aim, hs.ApproxDP) else None
    solved = replace(file, plan=found.plan, delta=stated.delta if stated else file.delta)
    if path is not None:
        show.write_whole(path, plan_text(options.for_one(solved)), force)
    if is_short:
        # Whatever digits were left out, the plan would be another one than the one that is proven.
        show.print_short(repr(found.value))
    warned: tuple[hs.answers.Caution, ...] = ()
    if stated and isinstance(found.achieved, hs.Certified):
        warned = hs.answers.cautions(found.achieved, found.plan, delta=stated.delta)
    told = {**hs.answers.document(found), **show.heading(solved), "out": out, "as_planned": planned}
    told |= {"schema": None} if is_group else {}
    achieved, number = found.achieved, (repr(found.value), "bold green")
    facts: list[show.Fact] = [
        ("solved", Text.assemble(f"{found.extreme} {name} ", number, f" ({found.status})")),
        ("target", str(found.target)),
        ("achieved", f"{achieved.quantity} {show.between(achieved.lower, achieved.upper)}"),
        ("written to", out or ""),
    ]
    bracket = "from {!r} to {!r}".format(*found.bracket)
    more = [(str(found.status), found.status.meaning), ("bracket", bracket)]
    if planned is not None:
        ends = show.between(planned["achieved"]["lower"], planned["achieved"]["upper"])
        own = f"{name} {planned['value']}, {achieved.quantity} {ends}: {planned['decision']}"
        more.append(("as planned", own))
    told["cautions"] = warned
    show.answer(told, facts, file=solved, cautions=warned, more=more, verdict=verdict)


def _aim(file: PlanFile, epsilon: Any, delta: Any, target: str | None) -> Target:
    if target is not None:
        if epsilon is not None or delta is not None:
            raise click.UsageError("give --target, or --epsilon and --delta; not both")
        attack = target.partition("(")[0].strip()
        aim: Any = _attack(attack, target) if attack in _ATTACKS else options.notion(target)
        return cast(Target, aim)
    wanted: Any = file.epsilon if epsilon is None else epsilon
    if wanted is None:
        raise click.UsageError("Give one target: --epsilon with --delta, or --target")
    at = options.question(file, delta=delta).value
    if at == 1:
        raise click.UsageError("delta must be below 1 to be a target; at 1, every plan meets it")
    return hs.ApproxDP(wanted, at)


def _attack(name: str, text: str) -> Target:
    try:
        call: Any = ast.parse(text.strip(), mode="eval").body
        named = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
        return cast(Target, _ATTACKS[name](*map(ast.literal_eval, call.args), **named))
    except (SyntaxError, TypeError, ValueError, AttributeError) as error:
        wanted = ", ".join(signature(_ATTACKS[name]).parameters)
        raise click.UsageError(f"--target {text!r}: {error}; write {name}({wanted})") from None


def _as_planned(
    plan: hs.Mechanism, parameter: str, target: Target, by: str
) -> dict[str, Any] | None:
    """Return what a plan has with its own value, ready for JSON; None where no accountant says."""
    constraint = constraint_of(target, by)
    try:
        found = constraint.evaluate(plan)
    except hs.errors.HockeystickError:
        return None
    otherwise = "misses" if constraint.violates(found) else "undecided"
    return {
        "value": fields.value_at(plan, fields.locate(plan, parameter)),
        "achieved": {"quantity": found.quantity, "lower": found.lower, "upper": found.upper},
        "decision": "meets" if constraint.meets(found) else otherwise,
    }


def _unknown_of(given: Source, parameter: str | None) -> tuple[PlanFile, str, bool]:
    """Return a plan, what to solve for, and whether the plan gives that itself.

    In place of a number that it leaves out it has one to begin with.
    """
    wanted = parameter and parameter.replace("-", "_")
    blanks = Blanks(wanted)
    file = given.file(blanks)
    left_out = [one for one in blanks.begun if one[0] not in given.values]
    if len(left_out) > 1:
        several = " and ".join(name for name, _ in left_out)
        raise click.UsageError(f"The plan leaves out {several}; give all but the one to solve for")
    if not left_out:
        # The size of a group is given, and no number of the plan.
        plan = options.for_one(file).plan
        if wanted is None:
            paths = ", ".join(map(fields.spelled, fields.numeric_paths(plan)))
            raise click.UsageError(f"Say --parameter, the number to solve for, one of {paths}")
        fields.locate(plan, wanted)
        return file, wanted, True
    ((name, start),) = left_out
    named = [x for x in fields.numeric_paths(file.plan) if fields.name_of(x) == name]
    found = [x for x in named if len(named) == 1 or fields.value_at(file.plan, x) == start]
    if len(found) != 1:
        paths = ", ".join(map(fields.spelled, named))
        raise click.UsageError(f"Give {name} a number, and say --parameter, one of {paths}")
    if wanted is not None and fields.locate(file.plan, wanted) != found[0]:
        raise click.UsageError(f"The plan leaves out {name}, and --parameter is {wanted}")
    return file, wanted or (name if len(named) == 1 else fields.spelled(found[0])), False


_RATES: Final = (0.1, 0.05, 1e-2, 1e-3, 1e-4, 1e-5)
# What audit says without -v.
_SHOWN: Final = {"found", "claimed", "rates"}


@command(
    "hockeystick tradeoff 'Gaussian(4)' --fpr 0.01",
    "hockeystick tradeoff plan.toml epochs=30",
    takes="PLAN fpr group out force json verbose",
    out="Draw the curve: a new .svg, .png or .pdf file.",
)
def tradeoff(given: Source, fpr: str | None, out: str | None, force: bool) -> None:
    """Print what an attacker could learn of a plan.

    At each false positive rate, the largest true positive rate of any attack that tells whether a
    record was used, and the smallest false negative rate; all proven.
    """
    texts = fpr.replace("%", "e-2").split(",") if fpr else []
    asked = tuple(dict.fromkeys(_validate.real("fpr", parse(one.strip()), FPR) for one in texts))
    rates, read_at = asked or _RATES, (*asked, 0.01)[0]
    path = None if out is None else show.out_path(out, FORMATS, force)
    if path is not None:
        require_matplotlib()
    file = given.file()
    label = file.title or given.name
    with progress("computing the trade-off"):
        f = hs.tradeoff(file.plan)
        ends = list(zip(rates, f.power(rates).tolist(), f(rates).tolist(), strict=True))
        told: dict[str, Any] = {
            "label": label,
            **show.heading(file),
            "adjacency": file.plan.adjacency,
            "assumptions": list(assumptions_of(file.plan)),
            "rates": [{"fpr": fpr, "tpr_upper": tpr, "fnr_lower": fnr} for fpr, tpr, fnr in ends],
            "advantage_upper": float(f.advantage),
            "bayes_error_lower": float(f.bayes_error(0.5)),
            "prior": 0.5,
            "reading": attack_in_words(read_at, f.power(read_at)),
        }
        if path is not None:
            with show.whole(path, force) as part:
                plot(f, labels=[label], path=part, fpr=read_at, title=file.title)
    found = show.empty_table(">at FPR", ">TPR at most", ">FNR at least")
    for rate, most, least in ends:
        found.add_row(plain(rate), at_most(most), at_least(least))
    error = f"Bayes error at least {at_least(told['bayes_error_lower'])} at prior 1/2"
    facts: list[show.Fact] = [
        ("reading", f"{told['reading']}."),
        ("advantage", f"at most {at_most(told['advantage_upper'])}; {error}"),
        ("written to", out or ""),
    ]
    whole = {"version": hs.__version__, "plans": [told], "plot": out}
    show.answer(whole, facts, found, file=file, assumptions=told["assumptions"])


@command(
    r"printf 'score,included\n2.1,1\n0.3,0\n1.7,1\n0.2,0\n' > scores.csv",
    "hockeystick audit scores.csv plan.toml",
    "hockeystick audit scores.csv --delta 1e-5 --confidence 0.99",
    takes="SCORES [PLAN] delta confidence one_run json verbose",
)
def audit(scores: str, given: Source | None, delta: Any, confidence: Any, one_run: bool) -> None:
    """Print what the scores of an attack prove, and whether they contradict a plan.

    SCORES has one row for each trial: the score, larger where the attack is surer that the record
    took part, and whether it did. A .csv file has columns score and included (1 or 0); an .npz file
    has arrays scores_in and scores_out; an .npy file has shape (m, 2). Each score comes from a run
    of its own; with --one-run, all from one for which each record was included by a coin.

    Exit status 0: no contradiction, which is no proof of privacy; or no plan was given. 1: refuted.
    """
    from hockeystick.reports.audit import Audit, audited

    file = given and given.file()
    at = delta if delta is not None else file and file.delta
    at = None if at is None else _validate.real("delta", at)
    asked: dict[str, Any] = {"confidence": confidence, "in_one_run": one_run}
    attack = Audit(name=scores, scores=hs.audit.load_scores(scores), **asked)
    with progress("auditing"):
        found = audited(attack, plan=file and file.plan, delta=at)
    about: dict[str, Any] = {}
    if file is not None:
        about = {"title": file.title, "description": hs.calibration.describe(file.plan)}
    style = "bold red" if found.is_refuted else "bold green"
    verdict = Text.assemble((found.word, style), f" {found.sure}") if found.word else ""
    show.answer(
        {"version": hs.__version__, **about, **found.as_dict()},
        [("verdict", verdict), *(fact for fact in found.facts if fact[0] in _SHOWN)],
        file=file,
        more=[("meaning", found.meaning), *(x for x in found.facts if x[0] not in _SHOWN)],
        assumptions=found.said.assumptions,
        status=int(found.is_refuted),
    )
