"""Calls of public functions as users of other libraries write them say what to write."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, Final

import pytest

import hockeystick as hs
from hockeystick._instead import CALLED_WITH, INSTEAD, TOO_MANY

# As type checkers refuse these calls themselves.
ANYTHING: Final[Any] = hs
CALIBRATION: Final[Any] = hs.calibration
PLAN: Final[Any] = hs.DPSGD(noise_multiplier=1.1, rate=0.01, steps=100)
TARGET: Final = hs.ApproxDP(2, 1e-5)


class DataLoader:
    """What ``from_loader`` reads."""

    dataset, batch_size, drop_last = range(50_000), 512, False

    def __len__(self) -> int:
        return 98


def accountant() -> Any:
    """Return an accountant of which a type checker knows nothing."""
    return hs.Accountant()


def from_loader(*given: Any, **named: Any) -> Any:
    """Call it as a type checker would not allow."""
    return ANYTHING.DPSGD.from_loader(*given, **named)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ANYTHING.epsilon(PLAN, 1e-5, method="rdp"), "did you mean 'accountant'?"),
        (lambda: ANYTHING.epsilon(PLAN, 1e-5, eps_error=0.1), "tolerance= is the relative width"),
        (lambda: ANYTHING.epsilon(PLAN, 1e-5, alphas=[2]), "takes the best of all orders"),
        (lambda: ANYTHING.epsilon(PLAN, 1e-5, count=10), "(write plan ** 10)"),
        (lambda: ANYTHING.epsilon(1.1, 0.01, 9, 1e-5), "of a plan such as DPSGD(noise_multiplier"),
        (lambda: ANYTHING.epsilon(hs.DPSGD, 1e-5), "(that is a class: call it, DPSGD(...))"),
        (lambda: ANYTHING.epsilon(PLAN, 1e-5, accountant=["rdp"]), "hockeystick.compare(plan, de"),
        (lambda: ANYTHING.delta(PLAN, 1, max_grad_norm=1), "in units of the clipping norm"),
        (lambda: ANYTHING.tradeoff(PLAN, fpr=0.1), "(write tradeoff(plan)(0.1))"),
        (lambda: ANYTHING.tradeoff(PLAN, group=3), "(write tradeoff(plan.for_group(3)))"),
        (lambda: ANYTHING.tradeoff(PLAN, delta=1e-5), "(write tradeoff(plan).epsilon(1e-05))"),
        (
            lambda: ANYTHING.calibrate(hs.DPSGD, "sigma", TARGET, rate=0.1, steps=10),
            "parameter must be 'noise_multiplier', as DPSGD calls it; got 'sigma'",
        ),
        (
            lambda: ANYTHING.calibrate(
                hs.DPSGD, "noise_multiplier", TARGET, rate=0.1, steps=9, max_grad_norm=1
            ),
            "a field of DPSGD must be one that it has (noise_multiplier is in units of",
        ),
        (
            lambda: ANYTHING.calibrate(PLAN, "noise_multiplier", TARGET, tol=0.01),
            "which has its numbers (did you mean 'tolerance'?); got 0.01",
        ),
        (
            lambda: ANYTHING.sweep(PLAN, noise_multiplier=[1, 2]),
            "(write hs.sweep({'noise_multiplier': [1, 2]}, hs.calibration.AskEpsilon(plan, del",
        ),
        (lambda: ANYTHING.sweep(PLAN, {"steps": [1]}), "(a plan is in the question: hs.sweep("),
        (
            lambda: ANYTHING.sweep({"steps": [1]}, hs.epsilon, n_jobs=2),
            "(write executor=concurrent.futures.ProcessPoolExecutor(2))",
        ),
        (lambda: CALIBRATION.AskEpsilon(PLAN, epsilon=1), "(write AskDelta(plan, epsilon=1))"),
        (lambda: CALIBRATION.AskEpsilon(PLAN, target_delta=1), "did you mean 'delta'?"),
        (CALIBRATION.AskEpsilon, "needs plan: write AskEpsilon(plan, delta=1e-5)"),
        (lambda: CALIBRATION.AskEpsilon(PLAN, orders=[2]), "takes the best of all orders"),
        (lambda: CALIBRATION.AskDelta(PLAN, delta=0.1), "(write AskEpsilon(plan, delta=0.1))"),
        (lambda: CALIBRATION.Solve(PLAN, "steps"), "Solve needs target: write Solve(plan, "),
        (lambda: CALIBRATION.Solve(PLAN, "steps", 2, 1e-5), "(write ApproxDP(2, delta=1e-5), or"),
        (lambda: CALIBRATION.Solve(PLAN, "steps", TARGET, 2), "spent must be a mechanism; got 2"),
        (lambda: ANYTHING.convert(PLAN), "convert needs to: write convert(plan, hockeystick.ZCDP)"),
        (lambda: ANYTHING.convert(PLAN, hs.ApproxDP, 1e-5), "ApproxDP, delta=1e-5)"),
        (lambda: ANYTHING.convert(PLAN, 1e-5), "(write convert(x, hockeystick.ApproxDP, delta=1e-"),
        (lambda: ANYTHING.convert(PLAN, TARGET), "(give the class, hockeystick.ApproxDP, and its"),
        (lambda: ANYTHING.convert(PLAN, hs.RenyiDP, alpha=2), "did you mean 'orders'?"),
        (ANYTHING.verify, "verify needs answer: write verify(answer, plan) of what"),
        (lambda: ANYTHING.report(PLAN, 1e-5), "write report(plan, delta=1e-5), and .save("),
        (lambda: ANYTHING.report(PLAN, out="a.html"), "report(plan, delta=1e-5).save('a.html')"),
        (ANYTHING.report, "report needs plan: write report(plan, delta=1e-5), and"),
        (lambda: ANYTHING.DPSGD(clipping_norm=1), "in units of the clipping norm, which is no"),
        (lambda: ANYTHING.DPSGD(poisson_sampling=True), "(write sampling='poisson' or 'shuffle')"),
        (lambda: ANYTHING.DPSGD(num_epochs=3), "did you mean 'epochs'?"),
        (lambda: ANYTHING.DPSGD(batch=3), "did you mean 'batch_size'?"),
        (lambda: from_loader(DataLoader()), "from_loader needs epochs and noise_multiplier: write"),
        (lambda: from_loader(DataLoader(), 30, 0.9), "takes only loader without a name; got 3"),
        (
            lambda: from_loader(DataLoader(), epochs=3, sigma=1),
            "needs noise_multiplier; got sigma (did you mean 'noise_multiplier'?): write DPSGD.",
        ),
        (
            lambda: from_loader(DataLoader(), noise_multiplier=1, steps=30),
            "needs epochs; got steps (for a number of steps write DPSGD(examples=..., batch_size=",
        ),
        (lambda: ANYTHING.Gaussian(epsilon=1), "calibrate(Gaussian, 'noise_multiplier', ApproxDP("),
        (lambda: ANYTHING.Gaussian(mu=2), "(noise_multiplier = 1 / mu, so 1 / 2)"),
        (lambda: ANYTHING.Gaussian(4, 2), "got 2 values: write Gaussian(sigma / sensitivity)"),
        (lambda: ANYTHING.Accountant(mechanism="rdp"), "epsilon(delta, accountant='rdp'))"),
        (lambda: accountant().step(), "step needs mechanism: write step(mechanism), or step("),
        (lambda: accountant().epsilon(), "Accountant.epsilon needs delta: write accountant.eps"),
        (lambda: accountant().epsilon(1e-5, alphas=[2]), "takes the best of all orders"),
        (lambda: accountant().delta(eps=1), "did you mean 'epsilon'?"),
        (lambda: accountant().tradeoff(0.1), "write accountant.tradeoff()(alpha), the least"),
        (lambda: accountant().history, "no attribute 'history'; use plan"),
    ],
)
def test_a_call_of_another_library_says_what_to_write(
    call: Callable[[], object], said: str
) -> None:
    with pytest.raises((TypeError, AttributeError, hs.HockeystickError)) as found:
        call()
    assert said in str(found.value)
    assert "__init__" not in str(found.value)


def test_questions_still_are_what_they_were() -> None:
    for ask in (
        hs.calibration.AskEpsilon(PLAN, delta=1e-5),
        hs.calibration.AskDelta(PLAN, epsilon=1),
        hs.calibration.Solve(PLAN, "noise_multiplier", TARGET),
    ):
        assert pickle.loads(pickle.dumps(ask)) == ask == copy.deepcopy(ask)
        assert not hasattr(ask, "__dict__")


def test_every_hint_is_of_something_that_is_called_and_can_be_filled_in() -> None:
    for (kind, letters), text in INSTEAD.items():
        assert letters == letters.lower().replace("_", ""), (kind, letters)
        assert text.format(1), (kind, letters)
    assert all(CALLED_WITH.values())
    assert all(TOO_MANY.values())
