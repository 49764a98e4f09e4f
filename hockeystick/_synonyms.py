"""What others call a thing, and what it is called here: the one table from which errors guess."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from hockeystick._instead import (
    CALLED_WITH,
    EVENT,
    FROM_EVENT,
    INSTEAD,
    METHODS_OF_MECHANISMS,
    METHODS_OF_OTHERS,
    OF_OTHERS,
    OTHER_NUMBERS,
    TOGETHER,
)

_LEAST_ALIKE: Final = 0.7
_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d*)?(e[+-]?\d+)?", re.IGNORECASE)
# Public names, and what papers and other libraries call the same. Capitals and dashes don't matter.
_OTHERS: Final = {
    "ApproxDP": "epsilon approximate-dp approximate-differential-privacy eps-delta-dp "
    "epsilon-delta-dp adp dp epsilon-delta epsilon-delta-dp-event eps-delta",
    "Composed": "composition sequential-composition composed-dp-event composed-mechanism compose",
    "CyclicPoisson": "banded-mf amplified-banded-matrix-factorization bandmf",
    "DPSGD": "noisy-sgd private-sgd dp-adam dp-gd",
    "DiscreteGaussian": "discrete-gaussian-mechanism discrete-gaussian-dp-event",
    "DiscreteLaplace": "geometric geometric-mechanism two-sided-geometric "
    "discrete-laplace-mechanism discrete-laplace-dp-event",
    "Encoder.buffered_toeplitz": "encoder-blt encoder-buffered-linear-toeplitz",
    "Encoder.toeplitz": "encoder-banded encoder-banded-toeplitz",
    "Exponential": "exponential-mechanism em exponential-mechanism-dp-event",
    "FDP": "f-dp",
    "FedSDP": "dp-fedavg fedavg federated-averaging dp-fedsgd user-level-dp client-level-dp",
    "FixedSizeSubsampled": "sampled-without-replacement sampled-without-replacement-dp-event "
    "without-replacement-subsampled uniform-subsampled subsample-without-replacement "
    "without-replacement",
    "GaussianMixture": "mixture-of-gaussians mixture-of-gaussians-dp-event",
    "GDP": "mu gaussian-dp gaussian-differential-privacy mu-gdp",
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
    "Shuffled": "shuffled-sgd",
    "ShuffledReports": "shuffle shuffling shuffle-model shuffler amplification-by-shuffling",
    "SparseVector": "svt sparse-vector-technique",
    "TCDP": "truncated-cdp truncated-concentrated-dp",
    "TreeAggregation": "dp-ftrl ftrl binary-tree tree-mechanism binary-mechanism "
    "single-epoch-tree-aggregation-dp-event",
    "TruncatedPoissonSubsampled": "truncated-subsampled-gaussian-dp-event",
    "UnaryEncoding": "oue sue optimized-unary-encoding symmetric-unary-encoding basic-rappor",
    "WithReplacementSubsampled": "sampled-with-replacement sampled-with-replacement-dp-event "
    "with-replacement",
    "ZCDP": "rho zcdp-event zc-dp-event zero-concentrated-dp",
}

# Parameters and accountants, and what others call the same; one of them may be several here.
_OTHER_WORDS: Final = {
    "accountant": "method accounting accountant-type accounting-mode",
    "adjacency": "neighboring-relation neighbouring-relation neighbor-relation neighborhood "
    "neighbours neighbors relation",
    "bands": "bandwidth num-bands number-of-bands",
    "batch_size": "b m batch batches lot-size expected-batch-size sample-size",
    "clients_per_round": "cohort-size report-goal",
    "count": "k n steps num-compositions compositions times repeats",
    "delta": "target-delta",
    "epsilon": "eps epsilon0 eps0 target-epsilon",
    "examples": "n num-examples number-of-examples num-samples dataset-size source-dataset-size "
    "population-size data-size",
    "epochs": "num-epochs n-epochs number-of-epochs",
    "geometric": "discrete-laplace two-sided-geometric discrete-laplacian",
    "inner": "mechanism event base-mechanism dp-event",
    "mu": "gdp-mu",
    "orders": "alphas alpha order",
    "noise_multiplier": "sigma z std stddev standard-deviation noise-std noise-scale scale noise",
    "leaves": "rounds steps num-rounds num-steps total-steps t",
    "moments": "ma moments-accountant",
    "parts": "mechanisms events",
    "prv": "pld pld-accountant prv-accountant privacy-loss-distribution fft",
    "rate": "q p sampling-probability sampling-prob sample-rate sampling-rate "
    "subsampling-rate probability prob gamma",
    "rdp": "rdp-accountant renyi",
    "rho": "zcdp-rho",
    "rounds": "num-rounds",
    "scale": "b beta lam noise-scale noise-multiplier noise-parameter",
    "sigma": "noise-multiplier scale std stddev standard-deviation",
    "square_root": "banded band-mf bandmf banded-square-root",
    "steps": "t num-steps iterations num-iterations n-iter max-steps compositions",
    "total_clients": "num-clients population-size",
}
# What others call the values of a parameter, in letters alone, and what they are here. Each is
# looked for within what was given, in this order: "without" comes before "with".
_WITHIN: Final[Mapping[str, Mapping[str, str]]] = {
    "sampling": {
        "without": "fixed-size",
        "noreplac": "fixed-size",
        "nonreplac": "fixed-size",
        "woreplac": "fixed-size",
        "withreplacement": "with-replacement",
        "poisson": "poisson",
        "bernoulli": "poisson",
        "shuffl": "shuffle",
        "permut": "shuffle",
        "ballsandbins": "random-allocation",
        "ballsinbins": "random-allocation",
        "allocat": "random-allocation",
        "fullbatch": "full-batch",
        "fixed": "fixed-size",
    },
    "adjacency": {
        "unbounded": "add-remove",
        "addor": "add-remove",
        "adddelete": "add-remove",
        "bounded": "replace-one",
        "replacespecial": "zero-out",
        "zero": "zero-out",
        "substitut": "replace-one",
        "replac": "replace-one",
        "swap": "replace-one",
        "changeone": "replace-one",
    },
}
_QUOTIENT: Final = re.compile(r"\d{1,15}/[1-9]\d{0,14}")
_LIST: Final = re.compile(r"[\d.e-]+(?:,\s*[\d.e-]+){2,}")
_PER_CENT: Final = 100
_THOUSANDS: Final = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+")
# What may mean several of them.
_SEVERAL: Final = {
    ("sampling", one): " (a random set without replacement is 'fixed-size', with replacement "
    "'with-replacement', and 'poisson' draws each example by itself)"
    for one in ("uniform", "random", "uniformsampling", "randomsampling", "subsampling")
}
_SEVERAL_OF_CLIENTS: Final = (
    " (a random set without replacement is 'fixed-size', and 'poisson' draws each by itself)"
)


def _letters(name: str) -> str:
    """Return the letters and digits of a name, which all its spellings have in common."""
    return re.sub(r"[\W_]", "", name).lower()


SYNONYMS: Final[Mapping[str, str]] = MappingProxyType(
    {_letters(other): name for name, others in _OTHERS.items() for other in others.split()}
)


def _inverted(table: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """Return what a table has others for, by the letters of these."""
    every = " ".join(table.values()).split()
    return MappingProxyType(
        {
            _letters(other): tuple(name for name, words in table.items() if other in words.split())
            for other in every
        }
    )


_WORDS: Final = _inverted(_OTHER_WORDS)
_CALLS: Final = _inverted(OF_OTHERS)
_METHODS: Final = _inverted(METHODS_OF_OTHERS)
_OF_MECHANISMS: Final = _inverted(METHODS_OF_MECHANISMS)


def meant(name: str, allowed: Iterable[str]) -> str | None:
    """Return which of the allowed names is meant: by a synonym, or spelled alike, or cut short."""
    alike = {_plain(one): one for one in allowed}
    found = SYNONYMS.get(_letters(name))
    if found in alike.values():
        return found
    for word in _WORDS.get(_letters(name), ()):
        if word in alike.values():
            return word
    wanted = _plain(name)
    fitting = [one for one in alike if _fits(one, wanted)]
    close = difflib.get_close_matches(wanted, fitting, n=1, cutoff=_LEAST_ALIKE)
    longer = [one for one in fitting if wanted and one.startswith(wanted)]
    guessed = close or (longer if len(longer) == 1 else [])
    return alike[guessed[0]] if guessed else None


def guess(name: str, value: str, listed: Iterable[str]) -> str:
    """Return what was meant by the value of a parameter, to follow an error; nothing if unknown."""
    if _THOUSANDS.fullmatch(value):
        return f" (write {value.replace(',', '')})"
    if _NUMBER.fullmatch(value):
        return f" (write {value}, without quotes)"
    if name == "accountant" and "," in value:
        return " (several side by side: hockeystick compare)"
    if _LIST.fullmatch(value):
        return " (several values at once: hockeystick epsilon or sweep, or hockeystick plan)"
    letters, allowed = _letters(value), list(listed)
    if _QUOTIENT.fullmatch(value):
        above, _, below = value.partition("/")
        return f" (write {int(above) / int(below)!r}, without quotes)"
    several = _SEVERAL.get((name.rpartition(".")[2], letters))
    if several is not None and "fixed-size" in allowed:
        return several if "with-replacement" in allowed else _SEVERAL_OF_CLIENTS
    others = _WITHIN.get(name.rpartition(".")[2], {})
    found = next((others[one] for one in others if one in letters), None)
    return told(found if found in allowed else meant(value, allowed))


def guess_number(name: str, value: object) -> str:
    """Return what was meant by a number that is not allowed, to follow an error."""
    if isinstance(value, float) and (share := share_of(name, value)):
        return share
    if name.rpartition(".")[2] != "rate" or not isinstance(value, int) or not 1 < value < 10**9:
        return ""
    batches = f"1/{value} for a loader of {value} batches"
    per_cent = f"{value / _PER_CENT!r} for {value} percent, " if value <= _PER_CENT else ""
    return (
        f" (a rate is batch size / examples: write {per_cent}{value}/N for batches of {value} of N "
        f"examples, or {batches})"
    )


def share_of(name: str, value: float) -> str:
    """Return that the share of the examples in a batch is a rate; nothing of other numbers."""
    if name.rpartition(".")[2] != "batch_size" or not 0.0 < value < 1.0:
        return ""
    return f" (a share of the examples is a rate: write rate={float(value)!r} in its place)"


def told(found: str | None) -> str:
    """Return a guess in words."""
    return "" if found is None else f" (did you mean {found!r}?)"


def parameter_hint(
    kind: str,
    name: str,
    value: object,
    allowed: Iterable[str],
    given: Mapping[str, object] = MappingProxyType({}),
) -> str:
    """Return what was meant by a parameter of a class, to follow an error; nothing if unknown.

    Args:
        kind: What the class is called.
        name: The parameter that it does not have.
        value: What was given for it.
        allowed: The parameters that it has.
        given: All that is given by name: what it takes may be made of two of them.
    """
    both = _together(kind, name, given)
    return both or instead_of(kind, name, value) or told(meant(name, allowed))


def _together(kind: str, name: str, given: Mapping[str, object]) -> str:
    """Return what a parameter and another that is given come to; nothing if unknown."""
    values = {_letters(one): value for one, value in given.items()}
    for (of, *names), known in TOGETHER.items():
        if of == kind and _letters(name) in names and values.keys() >= set(names):
            return f" ({known.format(*(values[one] for one in names))})"
    return ""


def instead_of(kind: str, name: str, value: object) -> str:
    """Return what takes more than another name, to follow an error; nothing if unknown."""
    # Of a method, what is said of the function of its name.
    known = INSTEAD.get((kind.rpartition(".")[2], _letters(name)))
    return "" if known is None else f" ({known.format(value)})"


def how_called(kind: str) -> str:
    """Return what to write in place of a wrong call; nothing if there is no more to say."""
    return CALLED_WITH.get(kind, "")


def no_attribute(
    module: str, name: str, public: Mapping[str, str], otherwise: str = ""
) -> AttributeError:
    """Return the error for a name that a module does not have.

    Args:
        module: The module.
        name: What was looked for in it.
        public: Public names, and where each of them is.
        otherwise: What to say where nothing is known that may be meant.
    """
    hint = "" if name.startswith("_") else _meant_by(name, public) or otherwise
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name)


def _meant_by(name: str, public: Mapping[str, str]) -> str:
    """Return what was meant by a name that a module does not have, to follow an error."""
    # A function and a class may differ in capitals alone.
    called = _CALLS.get(_letters(name)) or _CALLS.get(f"function{name}")
    if called:
        return f"; use {called[0]}"
    found = meant(name, public)
    if found is None:
        return ""
    event = f" An event itself is read by {FROM_EVENT}" if name.endswith(EVENT) else ""
    return f" (did you mean {public[found]}.{found}?{event})"


def other_number(name: str) -> str:
    """Return what is written for a mechanism of other libraries whose number is another here."""
    return OTHER_NUMBERS.get(_letters(name), "")


def called_here(name: str) -> str:
    """Return what is called in place of a method of other libraries; nothing if unknown."""
    found = _METHODS.get(_letters(name), ())
    return f"; use {found[0]}" if found else ""


def instead_of_method(name: str) -> str:
    """Return what is called in place of a mechanism's method in other libraries."""
    found = _OF_MECHANISMS.get(_letters(name), ())
    return f"; use {found[0]}" if found else ""


def spelled(value: object, allowed: Iterable[str]) -> object:
    """Return the allowed text that is written with other capitals or dashes, or is a synonym.

    What is none is returned as it is.
    """
    if not isinstance(value, str):
        return value
    alike, letters = {_letters(one): one for one in allowed}, _letters(value)
    return alike.get(letters) or alike.get(_letters(SYNONYMS.get(letters, "")), value)


def _plain(name: str) -> str:
    """Return a name in the letters that spellings have in common."""
    return name.strip().lower().replace("-", "_")


def _fits(one: str, wanted: str) -> bool:
    """Return whether a name may be meant: one with replacement is alike to those without it."""
    return "with" not in one or "withr" in wanted.replace("_", "")
