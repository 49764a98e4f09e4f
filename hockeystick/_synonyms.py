"""What others call a thing, and what it is called here: the one table from which errors guess."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

_LEAST_ALIKE: Final = 0.7
# Public names, and what papers and other libraries call the same. Capitals and dashes don't matter.
_OTHERS: Final = {
    "ApproxDP": "approximate-dp approximate-differential-privacy eps-delta-dp epsilon-delta-dp adp",
    "Composed": "composition sequential-composition composed-dp-event composed-mechanism compose",
    "CyclicPoisson": "banded-mf amplified-banded-matrix-factorization bandmf",
    "DPSGD": "noisy-sgd private-sgd dp-adam dp-gd",
    "DiscreteGaussian": "discrete-gaussian-mechanism discrete-gaussian-dp-event",
    "DiscreteLaplace": "geometric geometric-mechanism two-sided-geometric "
    "discrete-laplace-mechanism discrete-laplace-dp-event",
    "Exponential": "exponential-mechanism em exponential-mechanism-dp-event",
    "FDP": "f-dp",
    "FedSDP": "dp-fedavg fedavg federated-averaging dp-fedsgd user-level-dp client-level-dp",
    "FixedSizeSubsampled": "sampled-without-replacement sampled-without-replacement-dp-event "
    "without-replacement-subsampled uniform-subsampled subsample-without-replacement "
    "without-replacement",
    "GDP": "gaussian-dp gaussian-differential-privacy mu-gdp",
    "Gaussian": "gaussian-mechanism gaussian-dp-event analytic-gaussian gaussian-analytic "
    "exact-gaussian-mechanism gauss normal gaussian-noise",
    "Laplace": "laplace-mechanism laplace-dp-event laplacian exact-laplace-mechanism laplace-noise",
    "MatrixFactorization": "matrix-mechanism mf dp-mf dp-matrix-factorization blt dp-blt "
    "correlated-noise",
    "Parallel": "parallel-composition",
    "PermuteAndFlip": "permute-and-flip-dp-event",
    "PoissonSubsampled": "subsampled-gaussian sampled-gaussian sgm sampled-gaussian-mechanism "
    "subsampled-gaussian-mechanism poisson-sampled-dp-event poisson-sampled poisson-sampling "
    "poisson-subsample subsampled subsampling amplification-by-sampling",
    "PureDP": "epsilon-dp eps-dp pure pure-differential-privacy",
    "RandomAllocation": "random-allocation-dp-event",
    "RandomizedResponse": "rr krr k-rr grr generalized-randomized-response "
    "randomised-response binary-randomized-response randomized-response-dp-event warner "
    "direct-encoding k-ary-randomized-response",
    "RenyiDP": "rdp renyi renyi-differential-privacy",
    "Repeated": "self-composed self-composed-dp-event repeat",
    "ReportNoisyMax": "noisy-max noisy-argmax rnm report-noisy-max-dp-event",
    "Shuffled": "shuffle shuffling shuffled-sgd",
    "ShuffledReports": "shuffle-model shuffler amplification-by-shuffling",
    "SparseVector": "svt sparse-vector-technique",
    "TCDP": "truncated-cdp truncated-concentrated-dp",
    "TreeAggregation": "dp-ftrl ftrl binary-tree tree-mechanism binary-mechanism "
    "single-epoch-tree-aggregation-dp-event",
    "TruncatedPoissonSubsampled": "truncated-subsampled-gaussian-dp-event",
    "UnaryEncoding": "oue sue optimized-unary-encoding symmetric-unary-encoding basic-rappor",
    "WithReplacementSubsampled": "sampled-with-replacement sampled-with-replacement-dp-event "
    "with-replacement",
    "ZCDP": "cdp zcdp-event zc-dp-event zero-concentrated-dp concentrated-dp concentrated",
}

# Parameters, and what papers and other libraries call the same; one of them may be several here.
_OTHER_PARAMETERS: Final = {
    "batch_size": "b m lot-size expected-batch-size sample-size",
    "clients_per_round": "cohort-size report-goal",
    "count": "k n steps num-compositions compositions times repeats",
    "epsilon": "eps epsilon0 eps0",
    "examples": "n num-examples number-of-examples num-samples dataset-size source-dataset-size "
    "population-size data-size",
    "inner": "mechanism event base-mechanism dp-event",
    "mu": "gdp-mu",
    "noise_multiplier": "sigma z std stddev standard-deviation noise-std noise-scale scale noise",
    "parts": "mechanisms events",
    "rate": "q p sampling-probability sampling-prob sample-rate sampling-rate "
    "subsampling-rate probability prob gamma",
    "rho": "zcdp-rho",
    "rounds": "num-rounds",
    "scale": "b beta lam noise-scale noise-multiplier noise-parameter",
    "sigma": "noise-multiplier scale std stddev standard-deviation",
    "steps": "t num-steps iterations num-iterations n-iter max-steps compositions",
    "total_clients": "num-clients population-size",
}
# What takes more than another name, by what it is given to; ``{}`` is the value that was given.
_INSTEAD: Final = {
    ("DiscreteLaplace", "epsilon"): "scale = sensitivity / epsilon, so 1 / {} at sensitivity 1",
    ("DiscreteLaplace", "parameter"): "scale = 1 / parameter, so 1 / {}",
    ("Laplace", "epsilon"): "scale = 1 / epsilon in units of the sensitivity, so 1 / {}",
    ("Laplace", "sensitivity"): "scale is the noise's scale over the sensitivity",
    ("Gaussian", "sensitivity"): "noise_multiplier is the standard deviation over the sensitivity",
    ("Gaussian", "sigma"): "noise_multiplier is sigma over the sensitivity, so {} at sensitivity 1",
    ("DPSGD", "delta"): "epsilon(plan, delta) asks for a plan's epsilon at delta = {}",
    ("DPSGD", "maxgradnorm"): "noise_multiplier is in units of the clipping norm, which is no part",
    ("DPSGD", "l2normclip"): "noise_multiplier is in units of the clipping norm, which is no part",
}


def _letters(name: str) -> str:
    """Return the letters and digits of a name, which all its spellings have in common."""
    return re.sub(r"[\W_]", "", name).lower()


SYNONYMS: Final[Mapping[str, str]] = MappingProxyType(
    {_letters(other): name for name, others in _OTHERS.items() for other in others.split()}
)

_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        _letters(other): tuple(
            name for name, others in _OTHER_PARAMETERS.items() if other in others.split()
        )
        for other in " ".join(_OTHER_PARAMETERS.values()).split()
    }
)


def meant(name: str, allowed: Iterable[str]) -> str | None:
    """Return which of the allowed names is meant: by a synonym, or spelled alike, or cut short."""
    alike = {_plain(one): one for one in allowed}
    found = SYNONYMS.get(_letters(name))
    if found in alike.values():
        return found
    for parameter in _PARAMETERS.get(_letters(name), ()):
        if parameter in alike.values():
            return parameter
    wanted = _plain(name)
    fitting = [one for one in alike if _fits(one, wanted)]
    close = difflib.get_close_matches(wanted, fitting, n=1, cutoff=_LEAST_ALIKE)
    longer = [one for one in fitting if wanted and one.startswith(wanted)]
    guessed = close or (longer if len(longer) == 1 else [])
    return alike[guessed[0]] if guessed else None


def parameter_hint(kind: str, name: str, value: object, allowed: Iterable[str]) -> str:
    """Return what was meant by a parameter of a class, to follow an error; nothing if unknown.

    Args:
        kind: What the class is called.
        name: The parameter that it does not have.
        value: What was given for it.
        allowed: The parameters that it has.
    """
    instead = _INSTEAD.get((kind, _letters(name)))
    if instead is not None:
        return f" ({instead.format(value)})"
    found = meant(name, allowed)
    return "" if found is None else f" (did you mean {found!r}?)"


def no_attribute(module: str, name: str, public: Mapping[str, str]) -> AttributeError:
    """Return the error for a name that a module does not have.

    Args:
        module: The module.
        name: What was looked for in it.
        public: Public names, and where each of them is.
    """
    text = f"module {module!r} has no attribute {name!r}"
    found = None if name.startswith("_") else meant(name, public)
    hint = "" if found is None else f" (did you mean {public[found]}.{found}?)"
    return AttributeError(text + hint, name=name)


def _plain(name: str) -> str:
    """Return a name in the letters that spellings have in common."""
    return name.strip().lower().replace("-", "_")


def _fits(one: str, wanted: str) -> bool:
    """Return whether a name may be meant: one with replacement is alike to those without it."""
    return "with" not in one or "withr" in wanted.replace("_", "")
