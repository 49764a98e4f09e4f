"""Optuna's search for hyperparameters, charged as a whole before the first trial.

>>> import hockeystick as hs
>>> from hockeystick.adapters.optuna import optimize
>>> run = hs.Gaussian(noise_multiplier=5)
>>> def objective(trial):
...     rate = trial.suggest_float("rate", 0.1, 0.9)
...     return float(hs.release.gaussian(run, 1000.0 * rate, sensitivity=1))
>>> stopping = hs.mechanisms.tuning.TruncatedNegativeBinomial.of_mean(5)
>>> best = optimize(objective, hs.mechanisms.RandomStopping(run, stopping))
>>> sorted(best.candidate), best.score > 0
(['rate'], True)
"""

from hockeystick.adapters import missing

try:
    from hockeystick.adapters.optuna._optimize import optimize
except ModuleNotFoundError as error:
    raise missing(error, "optuna", "optuna") from error

__all__ = ["optimize"]
