"""Questions to the library: a line of code each, which anyone can run again, and how it is judged.

A line assigns ``answer``. Only what the package exports is used.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hockeystick.accountants import ACCOUNTANTS
from tests.judge import plans, verdicts
from tests.judge.plans import code
from tests.judge.truths import Spec, Truth, truth
from tests.judge.verdicts import Verdict

EPSILONS = (0.0, 0.0, 0.03125, 0.125, 0.25, 0.5, 1.0, 1.0, 2.0, 3.0, 4.0, 6.5, 12.0, 30.0, 50.0)
DELTAS = (0.0, 0.0, 1e-300, 1e-100, 1e-30, 1e-10, 1e-6, 1e-5, 0.001, 0.0625, 0.25, 0.5, 0.625, 1.0)
ALPHAS = (0.0, 1e-9, 0.001, 0.0625, 0.25, 0.4, 0.45, 0.5, 0.75, 0.96875, 1.0)
PROVING = [name for name, one in ACCOUNTANTS.items() if one.kind != "approximation"]
OPTIONS = (*(f", accountant={name!r}" for name in PROVING), ", digits=20", ", tolerance=0.01")


@dataclass(frozen=True)
class Question:
    line: str
    judge: Callable[[Verdict, Any], None]


def ends(answer: Any) -> tuple[Any, Any]:
    """The ends of an answer; an approximation promises nothing."""
    return answer.lower, answer.upper


def _ask(spec: Spec, line: str, judge: Callable[[Verdict, Truth, Any], None]) -> Question:
    """A question of which the truth is looked up when it is judged."""

    def judged(verdict: Verdict, answer: Any) -> None:
        what = truth(spec)
        if what.attacked or what.bounded:
            judge(verdict, what, answer)

    return Question(f"answer = {line}", judged)


def _asks(name: str, values: tuple[float, ...], judge: Callable[..., None]) -> Callable[..., Any]:
    def ask(draw: random.Random, spec: Spec, options: str = "") -> Question:
        at = draw.choice(values)
        return _ask(
            spec,
            f"hs.{name}({code(spec)}, {at!r}{options})",
            lambda verdict, what, answer: judge(verdict, what, at, ends(answer)),
        )

    return ask


ask_delta = _asks("delta", EPSILONS, verdicts.delta)
ask_epsilon = _asks("epsilon", DELTAS, verdicts.epsilon)


def ask_named(draw: random.Random, spec: Spec) -> Question:
    way: Callable[..., Question] = draw.choice((ask_delta, ask_epsilon))
    return way(draw, spec, draw.choice(OPTIONS))


def ask_tradeoff(draw: random.Random, spec: Spec) -> Question:
    kind = draw.choice(("bounds", "delta", "epsilon", "power"))
    choices = {"bounds": ALPHAS, "power": ALPHAS, "delta": EPSILONS, "epsilon": DELTAS}
    at = draw.choice(choices[kind])
    reading = f"{kind}_bounds" if kind == "power" else kind

    def judge(verdict: Verdict, what: Truth, answer: Any) -> None:
        if kind == "delta":
            verdicts.delta(verdict, what, at, ends(answer))
        elif kind == "epsilon":
            verdicts.epsilon(verdict, what, at, ends(answer))
        else:
            low, high = answer if kind == "bounds" else (1.0 - answer[1], 1.0 - answer[0])
            verdicts.tests(verdict, what, at, (low, high), kind)

    return _ask(spec, f"hs.tradeoff({code(spec)}).{reading}({at!r})", judge)


TARGETS = ("PureDP", "ApproxDP", "ApproxDP", "GDP", "ZCDP", "TCDP", "RenyiDP", "FDP")


def _conversion(draw: random.Random, spec: Spec, name: str) -> str:
    given = {
        "ApproxDP": draw.choice(
            [f", epsilon={draw.choice(EPSILONS)!r}", f", delta={draw.choice(DELTAS)!r}"]
        ),
        "TCDP": f", omega={draw.choice((1.5, 2.0, 8.0, 64.0))!r}",
        "RenyiDP": f", orders={draw.choice(([2.0], [1.5, 4.0], [1.125, 8.0, 25.0]))!r}",
    }.get(name, "")
    return f"hs.convert({code(spec)}, hs.{name}{given})"


def ask_convert(draw: random.Random, spec: Spec) -> Question:
    name = draw.choice(TARGETS)

    def judge(verdict: Verdict, what: Truth, answer: Any) -> None:
        verdicts.notion(verdict, what, answer)
        verdicts.least(verdict, what, answer)

    return _ask(spec, _conversion(draw, spec, name), judge)


def ask_converted(draw: random.Random, spec: Spec) -> Question:
    """What the accountants say of a converted guarantee: only its upper end is about the plan."""
    line = _conversion(draw, spec, draw.choice(TARGETS))
    at = draw.choice(EPSILONS)

    def judge(verdict: Verdict, what: Truth, answer: Any) -> None:
        verdict.ordered(*ends(answer), "delta")
        verdict.never_below(answer.upper, what.lower(at), f"delta({at!r})")

    return _ask(spec, f"hs.delta({line}, {at!r})", judge)


BUDGETS = (
    "hs.ZCDP(1e6)",
    "hs.TCDP(1e6, 4.0)",
    "hs.GDP(1e6)",
    "hs.PureDP(1e6)",
    "hs.RenyiDP({2.0: 1e6, 8.0: 1e6})",
    "hs.ApproxDP(1e6, 0.5)",
    "hs.ApproxDP(1e6, 0.5), expected=hs.Gaussian(2.0)",
)


def ask_filter(draw: random.Random, spec: Spec) -> Question:
    runs = draw.choice((1, 1, 2, 5))
    whole = Spec("Repeated", (runs,), (spec,), spec.adjacency)
    budget = draw.choice(BUDGETS)
    line = (
        f"f = hs.calibration.Filter({budget}); f.step({code(spec)}, count={runs}); answer = f.spent"
    )
    return Question(line, _ask(whole, "", verdicts.notion).judge)


def ask_odometer(draw: random.Random, spec: Spec) -> Question:
    runs, at = draw.choice((1, 1, 2, 5)), draw.choice((1e-6, 0.0625, 0.25))
    whole = Spec("Repeated", (runs,), (spec,), spec.adjacency)

    def judge(verdict: Verdict, what: Truth, answer: Any) -> None:
        verdict.never_below(at, what.lower(float(answer)), f"odometer at {answer!r}")

    expected = draw.choice(("", ", expected=hs.Gaussian(4.0)"))
    line = f"hs.calibration.Odometer({at!r}{expected}).step({code(spec)}, count={runs})"
    return _ask(whole, line, judge)


OPERATIONS: tuple[tuple[int, Callable[[random.Random, Spec], Question]], ...] = (
    (12, ask_delta),
    (12, ask_epsilon),
    (14, ask_named),
    (10, ask_tradeoff),
    (18, ask_convert),
    (6, ask_converted),
    (8, ask_filter),
    (3, ask_odometer),
)


def question(draw: random.Random) -> Question:
    spec = plans.plan(draw)
    weights = [weight for weight, _ in OPERATIONS]
    way = draw.choices([one for _, one in OPERATIONS], weights)[0]
    return way(draw, spec)
