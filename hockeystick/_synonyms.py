"""What others call a thing, and what it is called here: the one table from which errors guess."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

_LEAST_ALIKE: Final = 0.7
_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d*)?(e[+-]?\d+)?", re.IGNORECASE)
# Public names, and what papers and other libraries call the same. Capitals and dashes don't matter.
_OTHERS: Final = {
    "ApproxDP": "approximate-dp approximate-differential-privacy eps-delta-dp epsilon-delta-dp adp "
    "epsilon-delta epsilon-delta-dp-event eps-delta",
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
    "GaussianMixture": "mixture-of-gaussians mixture-of-gaussians-dp-event",
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

# Parameters and accountants, and what others call the same; one of them may be several here.
_OTHER_WORDS: Final = {
    "batch_size": "b m lot-size expected-batch-size sample-size",
    "clients_per_round": "cohort-size report-goal",
    "count": "k n steps num-compositions compositions times repeats",
    "delta": "target-delta",
    "epsilon": "eps epsilon0 eps0 target-epsilon",
    "examples": "n num-examples number-of-examples num-samples dataset-size source-dataset-size "
    "population-size data-size",
    "inner": "mechanism event base-mechanism dp-event",
    "mu": "gdp-mu",
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
    "steps": "t num-steps iterations num-iterations n-iter max-steps compositions",
    "total_clients": "num-clients population-size",
}
# Where a participant is in several rounds of one tree.
_IN_ONE_TREE: Final = (
    "who is in several leaves of one tree: MatrixFactorization(noise_multiplier, "
    "mechanisms.Encoder.tree(leaves, participations=..., separation=...)); ** is for trees that "
    "begin anew"
)
_OF_THE_PLAN: Final = "it belongs to the plan, as in DPSGD({name}=...)"
_A_STEP: Final = (
    "a step of DP-SGD is step(PoissonSubsampled(Gaussian(noise_multiplier), rate)); "
    "step(noise_multiplier=..., sample_rate=...) is of adapters.opacus.HockeystickAccountant"
)
_ORDERS: Final = (
    "accountant='rdp' takes the best of all orders; what is known at some of them is a plan, "
    "RenyiDP({{order: divergence}})"
)
# What takes more than another name, by what it is given to; ``{}`` is the value that was given.
_INSTEAD: Final = {
    ("sweep", "delta"): "write hs.sweep(grid, hs.calibration.AskEpsilon(plan, delta={}))",
    ("sweep", "epsilon"): "write hs.sweep(grid, hs.calibration.AskDelta(plan, epsilon={}))",
    ("sweep", "plan"): "write hs.sweep(grid, hs.calibration.AskEpsilon(plan, delta=1e-5))",
    ("DiscreteLaplace", "epsilon"): "scale = sensitivity / epsilon, so 1 / {} at sensitivity 1",
    ("DiscreteLaplace", "parameter"): "scale = 1 / parameter, so 1 / {}",
    ("Laplace", "epsilon"): "scale = 1 / epsilon in units of the sensitivity, so 1 / {}",
    ("Laplace", "sensitivity"): "scale is the noise's scale over the sensitivity",
    ("Gaussian", "sensitivity"): "noise_multiplier is the standard deviation over the sensitivity",
    ("Gaussian", "sigma"): "noise_multiplier is sigma over the sensitivity, so {} at sensitivity 1",
    ("TreeAggregation", "participations"): _IN_ONE_TREE,
    ("TreeAggregation", "separation"): _IN_ONE_TREE,
    ("TreeAggregation", "minseparation"): _IN_ONE_TREE,
    ("TreeAggregation", "maxparticipations"): _IN_ONE_TREE,
    ("TreeAggregation", "epochs"): _IN_ONE_TREE,
    ("TreeAggregation", "restarts"): _IN_ONE_TREE,
    ("Shuffled", "users"): "reports that each person randomizes: ShuffledReports(randomizer, {})",
    **{("step", letters): _A_STEP for letters in ("noisemultiplier", "samplerate", "rate")},
    ("DPSGD", "targetdelta"): "epsilon(plan, delta) asks for a plan's epsilon at delta = {}",
    ("DPSGD", "targetepsilon"): "calibrate(DPSGD, 'noise_multiplier', ApproxDP({}, delta), ...) "
    "solves for the noise that meets it",
    **{
        ("RandomizedResponse", letters): "epsilon = ln(p / (1 - p)) with two categories, so "
        "math.log({0} / (1 - {0}))"
        for letters in ("probability", "prob", "p")
    },
    **{(asked, "group"): "plan.for_group({})" for asked in ("epsilon", "delta", "compare")},
    ("DPSGD", "delta"): "epsilon(plan, delta) asks for a plan's epsilon at delta = {}",
    **{(asked, "orders"): _ORDERS for asked in ("epsilon", "delta")},
    **{
        (asked, letters): _OF_THE_PLAN.format(name=name)
        for asked in ("epsilon", "delta", "compare")
        for letters, name in (
            ("adjacency", "adjacency"),
            ("neighboringrelation", "adjacency"),
            ("neighbouringrelation", "adjacency"),
            ("noisemultiplier", "noise_multiplier"),
            ("sigma", "noise_multiplier"),
            ("samplerate", "rate"),
            ("samplingprobability", "rate"),
            ("rate", "rate"),
            ("q", "rate"),
            ("steps", "steps"),
            ("epochs", "epochs"),
        )
    },
    ("epsilon", "epsilon"): "delta(plan, epsilon) asks for a plan's delta at epsilon = {}",
    ("delta", "delta"): "epsilon(plan, delta) asks for a plan's epsilon at delta = {}",
    ("DPSGD", "maxgradnorm"): "noise_multiplier is in units of the clipping norm, which is no part",
    ("DPSGD", "l2normclip"): "noise_multiplier is in units of the clipping norm, which is no part",
}

# What a call lacks, or has too much of, and what to write, by what is called.
_CALLED_WITH: Final = {
    "Composed": "Composed((a, b)), or a @ b",
    "Encoder": "Encoder.tree(rounds, participations=..., separation=...), "
    "Encoder.square_root(rounds), Encoder.of(strategy, rounds) or Encoder.of_matrix(matrix)",
    "FDP": "FDP(tradeoffs.discrete_tradeoff(p, q)) of the probabilities of outcomes, or "
    "FDP(tradeoffs.G(mu))",
    "Parallel": "Parallel((a, b, c), 'region')",
    "RenyiDP": "RenyiDP({order: divergence}), or RenyiDP(zip(orders, divergences))",
    "calibrate": "calibrate(DPSGD, 'noise_multiplier', ApproxDP(epsilon, delta), examples=..., "
    "batch_size=..., epochs=...): a plan or a class of plans, what to solve for, a target",
    "sweep": "hs.sweep(grid, hs.calibration.AskEpsilon(plan, delta=1e-5)), or AskDelta, or Solve",
    "epsilon": "epsilon(plan, delta)",
    "delta": "delta(plan, epsilon)",
}

# Functions and classes of other libraries, and what is called in their place.
_OF_OTHERS: Final = {
    "hockeystick.epsilon(hockeystick.DPSGD(examples=..., batch_size=..., epochs=..., "
    "noise_multiplier=...), delta)": "compute-dp-sgd-privacy compute-dp-sgd-privacy-statement "
    "get-privacy-spent compute-rdp compute-epsilon",
    'hockeystick.calibrate(hockeystick.DPSGD, "noise_multiplier", hockeystick.ApproxDP(epsilon, '
    "delta), examples=..., batch_size=..., epochs=...)": "calibrate-dp-mechanism "
    "get-noise-multiplier find-noise-multiplier get-sigma calibrate-analytic-gaussian-mechanism",
    "hockeystick.epsilon(plan, delta), or in a loop hockeystick.Accountant()": "rdp-accountant "
    "pld-accountant prv-accountant gaussian-accountant moments-accountant privacy-accountant "
    "create-accountant",
    "hockeystick.FDP(hockeystick.tradeoffs.discrete_tradeoff(p, q)) for the probabilities of "
    "outcomes under two neighbours, or hockeystick.adapters.dp_accounting.from_pld(pld)": "pld "
    "pmf privacy-loss-distribution from-pld from-pmf from-privacy-loss-distribution dense-pld-pmf "
    "from-two-probability-mass-functions custom-mechanism",
    "hockeystick.DiscreteLaplace(scale=sensitivity / epsilon)": "geometric geometric-mechanism "
    "two-sided-geometric",
    "mechanism ** 0, which releases nothing": "no-op no-op-dp-event none-dp-event",
    "hockeystick.Gaussian(0), whose noise hides nothing": "non-private non-private-dp-event",
    "hockeystick.Mechanism, or for an event of dp-accounting "
    "hockeystick.adapters.dp_accounting.from_event(event, adjacency)": "dp-event",
    "hockeystick.epsilon(plan, delta)": "get-epsilon",
    "hockeystick.delta(plan, epsilon)": "get-delta compute-delta",
}
# The same of methods of an accountant.
_METHODS_OF_OTHERS: Final = {
    "epsilon(delta)": "get-epsilon get-privacy-spent compute-epsilon",
    "delta(epsilon)": "get-delta compute-delta",
    "step(mechanism, count)": "compose compose-event add record",
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
_CALLS: Final = _inverted(_OF_OTHERS)
_METHODS: Final = _inverted(_METHODS_OF_OTHERS)


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
    if name.rpartition(".")[2] != "rate" or not isinstance(value, int) or not 1 < value < 10**9:
        return ""
    if value <= _PER_CENT:
        part = f"{value / _PER_CENT!r}, for {value} percent"
        return f" (did you mean {part}, or 1/{value}, for a loader of {value} batches?)"
    return f" (did you mean 1/{value}?)"


def told(found: str | None) -> str:
    """Return a guess in words."""
    return "" if found is None else f" (did you mean {found!r}?)"


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
    return told(meant(name, allowed))


def how_called(kind: str) -> str:
    """Return what to write in place of a wrong call; nothing if there is no more to say."""
    return _CALLED_WITH.get(kind, "")


def no_attribute(module: str, name: str, public: Mapping[str, str]) -> AttributeError:
    """Return the error for a name that a module does not have.

    Args:
        module: The module.
        name: What was looked for in it.
        public: Public names, and where each of them is.
    """
    text = f"module {module!r} has no attribute {name!r}"
    if _letters(name) in _CALLS and not name.startswith("_"):
        return AttributeError(f"{text}; use {_CALLS[_letters(name)][0]}", name=name)
    found = None if name.startswith("_") else meant(name, public)
    hint = "" if found is None else f" (did you mean {public[found]}.{found}?)"
    return AttributeError(text + hint, name=name)


def called_here(name: str) -> str:
    """Return what is called in place of a method of other libraries; nothing if unknown."""
    found = _METHODS.get(_letters(name), ())
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
