"""Optuna's search for hyperparameters, charged as a whole before the first trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final, TypeAlias

import hockeystick as hs
from hockeystick import _validate
from hockeystick._validate import whole_numbers
from hockeystick.adapters import missing
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.ledger import CountedRun, LedgerCharge, ReservedRun
from hockeystick.ledger.reserved_run import on_ledger
from hockeystick.mechanisms.base import Mechanism, checked
from hockeystick.mechanisms.selection.tuning import RandomStopping
from hockeystick.release import Best
from hockeystick.release.counting import Charged, book, checked_charge
from hockeystick.release.samplers import Bits, run_count, secret_bits

try:
    import optuna
except ModuleNotFoundError as _error:
    raise missing(_error, "optuna", "optuna") from _error

__all__ = ["optimize"]
_Objective: TypeAlias = Callable[[optuna.Trial], float]
_TRIALS: Final = whole_numbers("k", 1, (2, 100))
_INDEPENDENT: Final = (
    "RandomStopping is of independent runs, and {} chooses by the results of earlier ones; use "
    "optuna.samplers.RandomSampler, or give trials= and one run's mechanism"
)


def optimize(
    objective: Callable[[optuna.Trial], float],
    mechanism: Mechanism,
    *,
    trials: int | None = None,
    sampler: optuna.samplers.BaseSampler | None = None,
    maximize: bool = True,
    charge: Charged | None = None,
    ledger: hs.Ledger | LedgerCharge | None = None,
    key: str | None = None,
    bits: Bits = secret_bits,
) -> Best[Mapping[str, Any], Mapping[str, Any]] | None:
    """Search by Optuna, charge the whole search before its first trial, and return the best trial.

    Guarantees:
        With ``trials``, those of ``mechanism ** trials``, with any of Optuna's samplers. With a
        ``RandomStopping``, those of that: the number of trials is drawn exactly and in secret,
        hyperparameters by a ``RandomSampler`` of the operating system's randomness, and what would
        tell of other trials is held back: log, number, time, pruning, and what an objective does to
        its study.

    Edge cases:
        A pruned trial, and a score that is no number, is never the best. None where no trial is
        left: all were pruned, or the number that was drawn is 0.

    Args:
        objective: As for ``Study.optimize``: what trains with a trial's hyperparameters and returns
            a score. What else a trial releases goes to ``trial.set_user_attr``. It looks at the
            data by ``mechanism`` only, scores, intermediate values and pruning included.
        mechanism: What one trial costs, where ``trials`` is given; else a ``RandomStopping``.
        trials: The number of trials, an integer >= 1, chosen without looking at the data.
        sampler: What chooses hyperparameters; ``RandomSampler`` if not given, and with a
            ``RandomStopping``, where a seed of it is not used: it would tell the best trial.
        maximize: Whether larger scores are better.
        charge: ``Accountant``, ``Filter``, ``Ledger`` or another with ``step(mechanism)``. Where a
            trial fails, its error is raised, and the charge stays; with a ``RandomStopping`` it
            tells more than is charged to whoever sees it: see ``release.random_search``.
        ledger: ``hs.Ledger``, or its ``charging(by=, note=)``, which reserves the whole search
            before the first trial, durably, and is told at the end what ran: of ``trials``, those
            that have begun. A search that fails or is killed counts in full.
        key: What the search is called there; it is never gone on with.
        bits: The source of the number of trials, for tests.

    Returns:
        The best trial: its parameters as candidate, its user attributes as output.

    References:
        Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.adapters.optuna import optimize
        >>> run = hs.Gaussian(noise_multiplier=5)
        >>> best = optimize(lambda trial: trial.suggest_int("depth", 1, 3), run, trials=4)
        >>> str(best.mechanism)
        'Gaussian (noise multiplier 5) x 4'
    """
    if not callable(objective):
        raise ParameterError("objective", objective, "a function of a trial that returns a score")
    if not isinstance(maximize, bool):
        raise ParameterError("maximize", maximize, "True or False")
    total: Any = checked("mechanism", mechanism)
    if trials is not None:
        total **= _validate.count("trials", trials, _TRIALS)
    elif not isinstance(mechanism, RandomStopping):
        raise ParameterError("mechanism", mechanism, "a RandomStopping, where trials= is not given")
    chosen = _checked_sampler(sampler, independent=trials is None)
    charged = checked_charge(charge)
    number = run_count(total.distribution, bits=bits) if trials is None else trials
    counted = _reserved(ledger, key, charged, mechanism, trials)
    book(charged, total)
    direction = "maximize" if maximize else "minimize"
    with ExitStack() as stack:
        # Its log tells the number and the score of every trial.
        stack.callback(optuna.logging.set_verbosity, optuna.logging.get_verbosity())
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        if trials is None:
            ran = [_alone(_in_floats(objective), direction) for _ in range(number)]
        else:
            study = optuna.create_study(sampler=chosen, direction=direction)
            study.optimize(_in_floats(objective, counted), n_trials=trials, n_jobs=1)
            ran = study.get_trials(deepcopy=False)
    if counted is not None:
        counted.finish()
    return _best(ran, total, maximize=maximize)


def _reserved(
    ledger: hs.Ledger | LedgerCharge | None,
    key: str | None,
    charged: Charged | None,
    mechanism: Mechanism,
    trials: int | None,
) -> CountedRun | None:
    if ledger is not None and charged is not None:
        raise ParameterError("charge", charged, "None where a ledger is given, which is charged")
    run = on_ledger(ledger, key, None)
    if not isinstance(run, ReservedRun):
        return None
    if trials is None:
        # How many trials ran is secret, so that the search is one, which has begun.
        counted = run.open("search", lambda _: mechanism, 1)
        counted.add(1)
        return counted
    return run.open("search", mechanism.__pow__, trials)


def _alone(objective: _Objective, direction: str) -> optuna.trial.FrozenTrial:
    """Return a trial that is the only one of its study, drawn by the system's randomness."""
    sampler, pruner = optuna.samplers.RandomSampler(), optuna.pruners.NopPruner()
    study = optuna.create_study(sampler=sampler, pruner=pruner, direction=direction)
    study.optimize(objective, n_trials=1, n_jobs=1)
    return study.get_trials(deepcopy=False)[0]


def _best(
    ran: Sequence[optuna.trial.FrozenTrial], total: Mechanism, *, maximize: bool
) -> Best[Mapping[str, Any], Mapping[str, Any]] | None:
    scored = [one for one in ran if one.state is optuna.trial.TrialState.COMPLETE]
    if not scored:
        return None
    best = (max if maximize else min)(scored, key=lambda one: float(one.value or 0.0))
    return Best(best.params, best.user_attrs, float(best.value or 0.0), total)


def _in_floats(objective: _Objective, counted: CountedRun | None = None) -> _Objective:
    """Return an objective, counted first, that raises for a score beyond all floats, unshown."""

    def scored(trial: optuna.Trial) -> float:
        if counted is not None:
            counted.add(1)
        found = objective(trial)
        try:
            float(found)
        except OverflowError:
            allowed = "a function of a trial that returns a score within the range of a float"
            raise ParameterError("objective", f"a {type(found).__name__}", allowed) from None
        except (TypeError, ValueError):
            pass  # Optuna says what it does with such
        return found

    return scored


def _checked_sampler(sampler: Any, *, independent: bool) -> optuna.samplers.BaseSampler:
    """Return the sampler, or raise where it is none or looks at what it must not."""
    if sampler is None:
        return optuna.samplers.RandomSampler()
    if not isinstance(sampler, optuna.samplers.BaseSampler):
        raise ParameterError("sampler", sampler, "one of optuna.samplers")
    if independent and type(sampler) is not optuna.samplers.RandomSampler:
        raise IncompatibleError(_INDEPENDENT.format(type(sampler).__name__))
    # Who knows a seed, or tries all of 32 bits, reads off which trial was the best.
    return optuna.samplers.RandomSampler() if independent else sampler
