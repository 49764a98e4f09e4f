"""Seconds: of usual plans, of growing ones, and of solving for the noise."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import hockeystick as hs
from benchmarks.reporting.sides import OWN, Ends, Question, Side, here, is_answer
from benchmarks.reporting.worker import TOO_LONG, Crew, Outcome

USUAL: Final = {
    "mnist-tutorial": Question(256 / 60_000, (1.1,), 14_063, 1e-5),
    "abadi-2016": Question(0.01, (4.0,), 10_000, 1e-5),
    "rare-sampling": Question(0.001, (0.8,), 100_000, 1e-6),
    "imagenet-scale": Question(16_384 / 1_281_167, (2.5,), 72_000, 8e-7),
}
# An answer that takes this share of the limit is asked for once.
LONG: Final = 0.1
Ask = Callable[[int], Outcome]
Progress = Callable[..., Any]


class Timed(NamedTuple):
    """The median of some runs, and the last answer or why there is none."""

    seconds: float
    runs: int
    answer: Any
    failure: str


def medians(asks: dict[str, Ask], repeats: int, limit: float) -> dict[str, Timed]:
    """Return what each takes: medians of runs that take turns."""
    outcomes: dict[str, list[Outcome]] = {name: [] for name in asks}
    for k in range(repeats):
        for name, ask in asks.items():
            before = outcomes[name]
            if not before or before[-1].seconds < LONG * limit:
                before.append(ask(k))
    return {name: _median(found) for name, found in outcomes.items()}


def _median(found: Sequence[Outcome]) -> Timed:
    last = found[-1]
    failure = last.failure
    if not failure and isinstance(last.answer, tuple) and not is_answer(last.answer):
        failure = "no finite answer"
    return Timed(statistics.median(one.seconds for one in found), len(found), last.answer, failure)


def asking(crew: Crew, sides: Iterable[Side], question: Question, limit: float) -> dict[str, Ask]:
    """Return how each side is asked a question the k-th time."""

    def ask(side: Side) -> Ask:
        return lambda k: crew.ask(side, question.afresh(k), limit)

    return {side.name: ask(side) for side in sides}


def usual(crew: Crew, repeats: int, limit: float, track: Progress) -> dict[str, dict[str, Timed]]:
    """Return what the usual plans take, by plan and side."""
    return {
        name: medians(asking(crew, here(), question, limit), repeats, limit)
        for name, question in track(USUAL.items(), "usual plans")
    }


class Curve(NamedTuple):
    """How cost grows: over what, and for each side the sizes and what they take."""

    axis: str
    found: dict[str, dict[float, Timed]]


def grown(
    crew: Crew,
    sizes: Sequence[float],
    asks: Callable[[float], dict[str, Ask]],
    repeats: int,
    limit: float,
    track: Progress,
) -> dict[str, dict[float, Timed]]:
    """Return what each size takes, without asking a side again that ran out of time."""
    found: dict[str, dict[float, Timed]] = {}
    for size in track(sizes):
        waiting = {
            name: ask
            for name, ask in asks(size).items()
            if all(one.failure != TOO_LONG for one in found.get(name, {}).values())
        }
        for name, timed in medians(waiting, repeats, limit).items():
            found.setdefault(name, {})[size] = timed
    return found


def over_steps(size: float) -> Question:
    """Return a plan of so many steps."""
    return Question(0.001, (0.8,), round(size), 1e-6)


def over_delta(size: float) -> Question:
    """Return a plan that is asked for epsilon at one over so much."""
    return Question(0.01, (1.0,), 1000, 1.0 / size)


def over_kinds(size: float) -> Question:
    """Return a plan with so many distinct mechanisms."""
    count = round(size)
    noises = tuple(0.8 * 2.5 ** (k / max(count - 1, 1)) for k in range(count))
    return Question(0.01, noises, 100, 1e-6)


QUESTIONS: Final[dict[str, Callable[[float], Question]]] = {
    "steps": over_steps,
    "1/delta": over_delta,
    "distinct mechanisms": over_kinds,
}
CURVE: Final = USUAL["mnist-tutorial"]
POINTS: Final = "points of a curve"


def tradeoff_curve(question: Question, count: int) -> None:
    """Compute points of the trade-off curve."""
    import numpy as np

    hs.tradeoff(question.plan)(np.geomspace(1e-6, 1.0, count))


def own_profile(question: Question, count: int) -> None:
    """Compute delta at many epsilons, each with its own certificate."""
    for epsilon in _epsilons(count):
        hs.delta(question.plan, epsilon)


def dp_accounting_profile(question: Question, count: int) -> None:
    """Compute delta at many epsilons by dp-accounting."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    one = pld.from_gaussian_mechanism(question.noises[0], sampling_prob=question.rate)
    one.self_compose(question.steps).get_delta_for_epsilon(_epsilons(count))


def prv_accountant_profile(question: Question, count: int) -> None:
    """Compute delta at many epsilons by prv-accountant."""
    import prv_accountant as prv

    accountant = prv.PRVAccountant(
        prvs=[prv.PoissonSubsampledGaussianMechanism(question.rate, question.noises[0])],
        max_self_compositions=[question.steps],
        eps_error=0.1,
        delta_error=1e-8,
    )
    for epsilon in _epsilons(count):
        accountant.compute_delta(epsilon, [question.steps])


def _epsilons(count: int) -> list[float]:
    return [0.5 + 3.5 * k / max(count - 1, 1) for k in range(count)]


CURVES: Final[dict[str, tuple[str, Callable[[Question, int], None]]]] = {
    "hockeystick f(alpha)": ("hockeystick", tradeoff_curve),
    "hockeystick delta(epsilon)": ("hockeystick", own_profile),
    "dp-accounting PLD delta(epsilon)": ("dp_accounting", dp_accounting_profile),
    "prv-accountant delta(epsilon)": ("prv_accountant", prv_accountant_profile),
}


def growth(
    crew: Crew, sizes: dict[str, Sequence[float]], repeats: int, limit: float, track: Progress
) -> list[Curve]:
    """Return how cost grows along each axis."""
    libraries = {side.library for side in here()}

    def curves(size: float) -> dict[str, Ask]:
        def ask(library: str, compute: Callable[[Question, int], None]) -> Ask:
            worker = crew.of(library)
            return lambda k: worker.ask(limit, compute, CURVE.afresh(k), round(size))

        return {name: ask(*how) for name, how in CURVES.items() if how[0] in libraries}

    def questions(axis: str) -> Callable[[float], dict[str, Ask]]:
        return lambda size: asking(crew, here(), QUESTIONS[axis](size), limit)

    return [
        Curve(
            axis,
            grown(
                crew,
                sizes[axis],
                curves if axis == POINTS else questions(axis),
                repeats,
                limit,
                lambda items, axis=axis: track(items, axis),
            ),
        )
        for axis in (*QUESTIONS, POINTS)
    ]


BUDGET: Final = hs.ApproxDP(2, 1e-5)


def own_noise(rate: float, steps: int) -> float:
    """Solve for the noise."""
    plan = hs.DPSGD(noise_multiplier=1.0, rate=rate, steps=steps)
    return float(hs.calibrate(plan, "noise_multiplier", BUDGET).value)


def opacus_noise(rate: float, steps: int, accountant: str) -> float:
    """Solve for the noise by Opacus."""
    from opacus.accountants.utils import get_noise_multiplier

    return float(
        get_noise_multiplier(
            target_epsilon=BUDGET.epsilon,
            target_delta=BUDGET.delta,
            sample_rate=rate,
            steps=steps,
            accountant=accountant,
        )
    )


def dp_accounting_noise(rate: float, steps: int, accountant: str) -> float:
    """Solve for the noise by dp-accounting."""
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    def event(noise: float) -> Any:
        step = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(noise))
        return dp.SelfComposedDpEvent(step, steps)

    maker = {"pld": PLDAccountant, "rdp": RdpAccountant}[accountant]
    return float(dp.calibrate_dp_mechanism(maker, event, BUDGET.epsilon, BUDGET.delta))


SOLVERS: Final[dict[str, tuple[str, Callable[..., float], tuple[str, ...]]]] = {
    "hockeystick": ("hockeystick", own_noise, ()),
    "dp-accounting PLD": ("dp_accounting", dp_accounting_noise, ("pld",)),
    "dp-accounting RDP": ("dp_accounting", dp_accounting_noise, ("rdp",)),
    "Opacus PRV": ("opacus", opacus_noise, ("prv",)),
    "Opacus RDP": ("opacus", opacus_noise, ("rdp",)),
}


class Solved(NamedTuple):
    """A solver's noise and time, and what epsilon is at that noise."""

    timed: Timed
    certified: Ends | None


def solved(crew: Crew, repeats: int, limit: float, track: Progress) -> dict[str, Solved]:
    """Return the noise that each finds for one plan and budget."""
    libraries = {side.library for side in here()}
    rate, _, steps, delta = USUAL["mnist-tutorial"]

    def ask(library: str, solve: Callable[..., float], more: tuple[str, ...]) -> Ask:
        worker = crew.of(library)
        return lambda k: worker.ask(limit, solve, rate * (1.0 + k * 2.0**-40), steps, *more)

    asks = {name: ask(*how) for name, how in SOLVERS.items() if how[0] in libraries}
    found: dict[str, Solved] = {}
    for name, one in track(asks.items(), "solving for the noise"):
        timed = medians({name: one}, repeats, limit)[name]
        certified = None
        if not timed.failure:
            asked = Question(rate, (timed.answer,), steps, delta)
            certified = crew.ask(OWN, asked, limit).answer
        found[name] = Solved(timed, certified)
    return found
