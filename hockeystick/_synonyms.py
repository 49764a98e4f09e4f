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
    "without-replacement-subsampled uniform-subsampled subsample-without-replacement",
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
    "WithReplacementSubsampled": "sampled-with-replacement sampled-with-replacement-dp-event",
    "ZCDP": "cdp zcdp-event zc-dp-event zero-concentrated-dp concentrated-dp concentrated",
}


def _letters(name: str) -> str:
    """Return the letters and digits of a name, which all its spellings have in common."""
    return re.sub(r"[\W_]", "", name).lower()


SYNONYMS: Final[Mapping[str, str]] = MappingProxyType(
    {_letters(other): name for name, others in _OTHERS.items() for other in others.split()}
)


def meant(name: str, allowed: Iterable[str]) -> str | None:
    """Return which of the allowed names is meant: by a synonym, or spelled alike, or cut short."""
    alike = {_plain(one): one for one in allowed}
    found = SYNONYMS.get(_letters(name))
    if found in alike.values():
        return found
    wanted = _plain(name)
    close = difflib.get_close_matches(wanted, alike, n=1, cutoff=_LEAST_ALIKE)
    longer = [one for one in alike if wanted and one.startswith(wanted)]
    guessed = close or (longer if len(longer) == 1 else [])
    return alike[guessed[0]] if guessed else None


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
