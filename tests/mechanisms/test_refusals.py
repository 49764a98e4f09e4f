"""What no mechanism takes: each wrong value is refused by the name of its parameter.

The law of all numbers in ``tests/laws/test_zoo.py`` asks every field of every mechanism for
negative ones, nan, texts and what lies beyond its domain, and ``set_fields`` checks each as it is
declared; here is one of each kind of declaration, and what a constructor checks by itself.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

import hockeystick as hs

# A call with a hole, the parameter that is named, and what the hole is filled with.
_STEPS: Final = "step_size=0.1, smoothness=20.0"
_LAST: Final = "m.LastIterate(**{'noise_multiplier': 1, 'steps': 10, 'examples': 100, " + (
    "'step_size': 0.1, 'smoothness': 5.0} | {_})"
)
_BINS: Final = (
    "m.BallsInBins(**{'noise_multiplier': 1., 'coefficients': (1., .5), 'rounds': 9, "
    + ("'bins': 3} | {_})")
)
_CYCLE: Final = "m.CyclicPoisson(**{'noise_multiplier': 1., 'coefficients': (1., .5), " + (
    "'rounds': 9, 'cycle': 3, 'rate': .1} | {_})"
)
_GOSSIP: Final = "m.GossipAveraging(**{'noise_multiplier': 1., 'graph': m.Graph.cycle(9), " + (
    "'rounds': 2, 'party': 2, 'observers': [0]} | {_})"
)
_PATH: Final = "m.Graph.path(5)"
_CLIENT: Final = "{'examples': 600, 'batch_size': 16, 'noise_multiplier': 2., 'local_steps': 38}"
_SYNC: Final = f"f.PriFedSync(**{{'clients': f.LocalTraining(**{_CLIENT}), 'rounds': 9}} | {{_}})"
_CLIENTS: Final = (
    "'noise_multiplier': 3., 'total_clients': 100, 'clients_per_round': 10, 'rounds': 8"
)
_RECORDS: Final = _CLIENTS + ", 'examples_per_client': 40, 'batch_size': 4, 'local_steps': 6"
_SDP: Final = f"f.FedSDP(**{{{_CLIENTS}, 'sampling': 'poisson'}} | {{_}})"
_CDP: Final = f"f.FedCDP(**{{{_RECORDS}, 'sampling': 'two-stage'}} | {{_}})"
_ALPHA: Final = _CDP.replace("FedCDP", "FedAlphaCDP")
_TRAINING: Final = "hs.DPSGD(**{'examples': 60_000, 'batch_size': 256, 'epochs': 60, " + (
    "'noise_multiplier': 1.1} | {_})"
)
_BY_RATE: Final = _TRAINING.replace("256", "None")
_BY_STEPS: Final = _TRAINING.replace("'epochs': 60", "'epochs': None")
REFUSED: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("m.PartitionSelection(_, 9)", "noise", ("hs.Exponential(1.)", "hs.Gaussian(2.) ** 2", "2.")),
    ("m.PartitionSelection(_, 9)", "noise", ("hs.DiscreteGaussian(2, 2)",)),
    ("m.PartitionSelection(hs.Gaussian(3), _)", "threshold", ("-1", "inf", "'5'")),
    ("m.PartitionSelection(hs.Gaussian(3), 9, partitions=_)", "partitions", ("0", "1.5")),
    ("m.PartitionSelection(hs.Gaussian(3), 9, adjacency=_)", "adjacency", ("'replace'",)),
    (_BINS, "coefficients", ("()", "(1., -.1)", "(inf,)")),
    (_CYCLE, "coefficients", ("()", "(nan,)", "(1., -.5)")),
    (_LAST, "batch_size", ("101",)),
    (_LAST, "batches", ("'poisson'",)),
    (_LAST, "convexity", ("-.1", "6")),
    (
        "m.SparseVector(1., 2., threshold_noise='gaussian', query_noise=_)",
        "queries",
        ("'gaussian'",),
    ),
    ("m.SparseVector(1., 2., queries=3, query_noise=_)", "threshold_noise", ("'gaussian'",)),
    ("m.SparseVector(1., 2., monotone=_)", "monotone", ("1",)),
    ("m.RandomAllocation(hs.Gaussian(1.), 10, _)", "participations", ("11", "-1", ".5")),
    ("m.SinhNormal(.01, _)", "width", ("0", "inf", "math.nextafter(10., 0.)")),
    ("m.SinhNormal(_, 10)", "width", ("math.nextafter(.01, 0.)",)),
    ("m.SinhNormal(1e-300, _)", "width", ("1e149",)),
    (
        "m.GaussianMixture(1, _, (.5, .5))",
        "sensitivities",
        ("(0, -1)", "(0, inf)", "()", "'01'", "3"),
    ),
    ("m.GaussianMixture(1, (0, 1), _)", "probabilities", ("(.5, 1.5)", "(.5,)", "(.5, .499)")),
    ("m.JointGaussian(_)", "noise_multipliers", ("()", "'3'", "2.", "None", "(True,)")),
    (
        "m.GaussianSequence(_, .1)",
        "noise_multipliers",
        ("()", "1.", "(1., 0.)", "(1., inf)", "None"),
    ),
    ("m.Graph(_)", "parties", ("0",)),
    ("m.Graph.path(_)", "parties", ("'3'", "10**7")),
    ("m.Graph.complete(_).pairs", "parties", ("10**6",)),
    ("m.Graph.random_out(5, _, seed=1)", "chosen", ("5", "-1")),
    ("m.Graph.random_out(10**6, _, seed=1)", "chosen", ("10**5",)),
    ("m.Graph.random_out(5, 2, seed=_)", "seed", ("-1",)),
    ("m.GOPA(1., 1., _)", "graph", ("'cycle'",)),
    (
        f"m.GOPA(1., 1., {_PATH}, colluders=_)",
        "colluders",
        ("[5]", "[1, 1]", "[1.]", "'1'", "range(5)"),
    ),
    (_GOSSIP, "graph", ("'cycle'", "m.Graph.cycle(10_001)")),
    (_GOSSIP, "party", ("9", "0", "True", "None")),
    (_GOSSIP, "observers", ("[]", "[9]", "[0, 0]", "range(9)", "'0'")),
    (_GOSSIP, "weights", ("'uniform'",)),
    (f"m.NoisyIterations(1., 10, _, {_STEPS})", "position", ("11", "0")),
    (f"m.NoisyIterations(1., 10, {_STEPS}, released=_)", "released", ("'some'",)),
    (f"m.NoisyIterations(1., 10, {_STEPS}, convex=_)", "convex", ("1",)),
    (f"m.TokenWalk(1., 10, _, {_STEPS})", "topology", ("'star'",)),
    (f"m.TokenWalk(1., 10, observers=_, {_STEPS})", "observers", ("10",)),
    (f"m.TokenWalk(1., 10, 'ring', distance=_, {_STEPS})", "distance", ("10",)),
    (f"m.TokenWalk(10., 100, {_STEPS}).excess(_, 3)", "steps", ("-1",)),
    (f"m.TokenWalk(10., 100, {_STEPS}).excess(10, _)", "visits", (".5",)),
    (f"f.LocalTraining(**{_CLIENT} | {{_}})", "batch_size", ("0", "601")),
    (_SYNC, "clients", ("()", "None", "hs.Gaussian(1)", "(hs.Gaussian(1),)")),
    *((made, "clients_per_round", ("0", "101", "2.5")) for made in (_SDP, _CDP, _ALPHA)),
    *((made, "sampling", ("'shuffle'", "None")) for made in (_SDP, _CDP, _ALPHA)),
    (_SDP.replace("{_}", "{'total_clients': _}"), "clients_per_round", ("9",)),
    *((made, "batch_size", ("0", "41")) for made in (_CDP, _ALPHA)),
    (
        "m.tuning.TruncatedNegativeBinomial(_, .1)",
        "eta",
        ("-1", "-2.", "inf", "nan", "'1'", "True"),
    ),
    ("m.tuning.TruncatedNegativeBinomial(1., _)", "gamma", ("0", "1", "-.1", "2.", "None")),
    ("m.tuning.TruncatedNegativeBinomial.of_mean(_)", "mean", ("0", "-1.", "inf", "nan", "1.")),
    ("m.tuning.Binomial(_, .5)", "trials", ("0", "-1", "2.5", "10**15 + 1", "inf", "'3'", "True")),
    ("m.tuning.Binomial(10, _)", "probability", ("0.", "1", "-.1", "1.5", "nan", "None")),
    ("m.RandomStopping(hs.Gaussian(1.), _)", "distribution", ("3",)),
    ("hs.PoissonSubsampled(_, .1)", "inner", ("1.1", "None", "'Gaussian'", "hs.Gaussian")),
    ("hs.Shuffled(hs.Gaussian(1.), 10, group=_)", "group", ("0", "1.5", "-1", "10**16", "'two'")),
    ("m.UnaryEncoding(1., _)", "kind", ("'optimised'", "''", "1", "None", "True")),
    ("hs.Shuffled(hs.Gaussian(1.), 1, last_batch=_)", "last_batch", ("'smaller'",)),
    ("hs.Composed(_)", "parts", ("()", "''", "hs.Gaussian(1.)", "None", "3")),
    ("hs.Repeated(hs.Gaussian(1.), _)", "count", (".5", "10**15 + 1")),
    (_TRAINING, "examples", ("10**400", "None")),
    (_TRAINING, "batch_size", ("1.5", "True", "60_001")),
    (_TRAINING, "epochs", ("-.5", "inf", "'60'", "1e300")),
    (_TRAINING, "sampling", ("'shuffled'", "None")),
    (_TRAINING, "clipping", ("'microbatch'",)),
    (_TRAINING, "examples_per_user", ("0", "1.5", "60_001")),
    (_TRAINING, "extra", ("'Gaussian'", "1.", "()", "{'mechanism': 'Gaussian'}")),
    (_TRAINING, "extra[1]", ("(hs.Gaussian(1.), 2.)",)),
    ("hs.FixedSizeSubsampled(hs.Gaussian(.5), 3, 30, clipped=_)", "clipped", ("'yes'",)),
    ("hs.Gaussian(_)", "noise_multiplier", ("10**400",)),
    ("n.MetricDP(_)", "epsilon", ("-1", "nan")),
    ("n.MetricDP(1, _)", "metric", ("''", "2")),
    ("n.MetricDP(1, origin=_)", "origin", ("'proof'",)),
    ("n.MetricDP(1).within(_)", "radius", ("-1", "nan")),
    ("n.MetricDP(1).group(_)", "size", ("0",)),
    ("n.MetricDP(1).compose(_)", "other", ("hs.PureDP(1)",)),
    ("n.metric_composition(_)", "releases", ("[]", "3", "[(hs.PureDP(1), 1)]")),
    ("n.metric_composition([(n.MetricDP(1), _)])", "radius", ("-1",)),
    ("hs.Parallel(_)", "parts", ("()", "3")),
    ("hs.Parallel(_)", "parts[1]", ("(hs.Gaussian(1), 2)",)),
    ("hs.Parallel((hs.Gaussian(1),), _)", "split", ("''", "None", "3")),
    (_TRAINING.replace("{_}", "{'batch_size': _}"), "batch_size or rate", ("None",)),
    (_TRAINING.replace("{_}", "{'epochs': _}"), "epochs or steps", ("None",)),
    (_BY_RATE, "rate", ("nan", "0")),
    (_BY_STEPS, "steps", (".5", "10**15 + 1")),
    ("m.Encoder.of(_, 9)", "strategy", ("3", "m.Encoder.square_root(9)")),
    ("m.Encoder.of(m.Toeplitz([1.]), _)", "rounds", ("10**6 + 1",)),
    ("m.Encoder.toeplitz([1], _)", "rounds", ("10**6 + 1",)),
    ("m.Encoder.square_root(5, bands=_)", "bands", ("0",)),
    ("m.Encoder.square_root(5, participations=_)", "participations", ("0",)),
    ("m.Encoder.square_root(5, separation=_)", "separation", ("1.5",)),
    ("m.Encoder.toeplitz(_, 5)", "coefficients", ("[]", "[nan]")),
    (
        "m.Encoder.of_matrix(_)",
        "matrix",
        ("'ab'", "3", "[]", "[[]]", "[[1, 2], [3]]", "[[1., nan]]"),
    ),
    ("m.Encoder.of_matrix(_)", "matrix", ("[[inf]]", "[[True]]", "[['1']]", "[1, 2]")),
    ("m.MatrixFactorization(1., _)", "encoder", ("[[1.]]",)),
    ("m.Toeplitz(_)", "coefficients", ("[]", "'ab'")),
    ("m.BandedInverse(_)", "coefficients", ("[0., 1.]", "[-1.]", "[1., inf]")),
    ("m.BufferedToeplitz(_, [])", "scales", ("[]",)),
    ("m.BufferedToeplitz(_, [.5])", "scales", ("[0.]", "[-.5]", "[nan]")),
    ("m.BufferedToeplitz([.5], _)", "decays", ("[1.]", "[0.]", "[]", "[.5, .25]", "3")),
)


def _calls() -> Iterator[tuple[str, str]]:
    for made, name, values in REFUSED:
        for value in values:
            filled = f"{{'{name.partition(chr(91))[0]}': {value}}}" if "{_}" in made else value
            yield filled.join(re.split(r"(?<!\w)(?:\{_\}|_)(?!\w)", made)), name


@pytest.mark.parametrize(("call", "name"), list(_calls()))
def test_what_is_wrong_is_named(call: str, name: str) -> None:
    names: dict[str, Any] = {"hs": hs, "m": hs.mechanisms, "f": hs.federated, "n": hs.notions}
    with pytest.raises(hs.errors.ParameterError) as caught:
        eval(call, {**names, "math": math, "inf": math.inf, "nan": math.nan})
    assert caught.value.name == name


_G: Final = hs.Gaussian(1.0)
_SAMPLE: Final = hs.PoissonSubsampled(_G, 0.1)
_ZEROED: Final = hs.PoissonSubsampled(_G, 0.1, "zero-out")
_FIXED: Final = hs.FixedSizeSubsampled(_G, 3, 10, "add-remove")
_CAPPED: Final = hs.mechanisms.TruncatedPoissonSubsampled(_G, 0.1, 3, 10)
_MOVES: Final = "{'step_size': 0.1, 'smoothness': 20.0}"
_FEW: Final = _TRAINING.replace("60_000", "1000").replace("256", "10").replace(": 60,", ": 1,")
# A call of what does not go together, and words of its reason.
INCOMPATIBLE: Final[tuple[tuple[str, str], ...]] = (
    ("m.RandomAllocation(hs.Laplace(1.), 10)", r"Gaussian noise only.*PoissonSubsampled"),
    ("m.RandomAllocation(SAMPLE, 10)", "Gaussian noise only"),
    ("m.RandomAllocation(G, 10, adjacency='replace-one')", "use add-remove or zero-out"),
    ("hs.Shuffled(G, 10, 'add-remove')", "use zero-out or replace-one"),
    *(
        (f"hs.Shuffled({inner}, 10)", "one run of the inner mechanism per epoch")
        for inner in ("hs.Laplace(1.)", "SAMPLE", "G ** 2")
    ),
    ("hs.Shuffled(G, 10) @ SAMPLE", "described under one adjacency"),
    (
        "hs.PoissonSubsampled(hs.Laplace(1), .1, 'replace-one')",
        r"for the Gaussian mechanism, not for Laplace \(scale 1\); use add-remove or zero-out",
    ),
    ("m.PoissonSubsampledGroup(hs.Laplace(1.), .1, 2)", "for the Gaussian mechanism, not for"),
    ("hs.PoissonSubsampled(ZEROED, .1)", "is described under zero-out and cannot be acc"),
    (
        "hs.PoissonSubsampled(hs.DPSGD(rate=1, steps=1, noise_multiplier=1, "
        "adjacency='replace-one'), .1, 'zero-out')",
        "is described under replace-one",
    ),
    # Out of fewer than 10 examples each would be drawn more often than is accounted for.
    *(
        (made, "described for a stated number of examples")
        for inner in ("FIXED", "CAPPED", "m.TruncatedPoissonSubsampled(FIXED, .1, 3, 9)")
        for made in (f"hs.PoissonSubsampled({inner}, .1)", f"m.RevealedSample({inner}, .1)")
    ),
    ("hs.FixedSizeSubsampled(hs.Laplace(.5), 3, 30, 'zero-out', True)", "leave clipped out"),
    ("m.GaussianSequence((1.,), .1, 'replace-one')", "compose PoissonSubsampled"),
    ("m.ShuffledReports(SAMPLE, 100)", "each person randomizes"),
    ("m.ShuffledReports(hs.PureDP(1.), 9) @ SAMPLE", "must"),
    (_BINS.replace("{_}", "{'adjacency': 'replace-one'}"), "replace-one"),
    (_CYCLE.replace("{_}", "{'adjacency': 'replace-one'}"), "replace-one"),
    (
        "m.CyclicPoisson(2., (1., .5, .25), rounds=20, cycle=2, rate=.1)",
        "must be at least 3, got 2",
    ),
    *(
        (f"m.{name}(10., 100, **{_MOVES} | {given})", reason)
        for name in ("NoisyIterations", "TokenWalk")
        for given, reason in (
            ("{'convex': False}", "proven for convex losses alone"),
            ("{'smoothness': 20.000001}", "step_size times smoothness must be at most 2"),
            ("{'adjacency': 'add-remove'}", "replace-one' or 'zero-out', not 'add-remove'"),
        )
    ),
    (f"m.NoisyIterations(10., 100, **{_MOVES}, released='all')", "not covered by later noise"),
    (f"m.TokenWalk(10., 100, 'ring', observers=2, **{_MOVES})", "give its distance"),
    (f"m.TokenWalk(10., 100, distance=2, **{_MOVES})", "there is no distance"),
    (f"m.TokenWalk(10., 100, 'ring', **{_MOVES}).excess(10, 3)", "once a round"),
    *(
        (_LAST.replace("{_}", given), reason)
        for given, reason in (
            ("{'smoothness': 20.1}", "at most 2, where gradient steps contract; 0.1 times 20.1"),
            ("{'diameter': 1}", "depends on gradient_bound"),
            ("{'batch_size': 10, 'batches': 'full-batch'}", "one of all 100 examples"),
            ("{'batch_size': 10, 'adjacency': 'add-remove'}", "move others to other batches"),
        )
    ),
    (_ALPHA.replace("{_}", "{'sensitivity': 'l2-max'}"), "noise of another scale"),
    (_SDP.replace("{_}", "{'sampling': 'revealed'}"), "shows that a client exists"),
    (_TRAINING.replace("{_}", "{'steps': 100}"), "epochs or steps, not both; got epochs = 60, s"),
    (_TRAINING.replace("{_}", "{'rate': .01}"), "batch_size or rate, not both; got batch_size = "),
    *(
        (_FEW.replace("{_}", "{'examples_per_user': 2} | " + given), reason)
        for given, reason in (
            ("{'sampling': 'fixed-size'}", r"sampling 'fixed-size'.*tradeoff\(plan\)\.gro"),
            (
                "{'sampling': 'shuffle', 'adjacency': 'zero-out'}",
                r"sampling 'shuffle'.* --group 2, or in Python plan\.for_group\(2\)$",
            ),
            ("{'batch_cap': 20}", "leave out batch_cap"),
            ("{'clipping': 'batch'}", "clip each example on its own"),
        )
    ),
)


@pytest.mark.parametrize(("call", "reason"), INCOMPATIBLE)
def test_what_does_not_go_together_is_refused_with_the_reason(call: str, reason: str) -> None:
    names = {"hs": hs, "m": hs.mechanisms, "f": hs.federated, "G": _G, "SAMPLE": _SAMPLE}
    with pytest.raises(hs.errors.IncompatibleError, match=reason):
        eval(call, {**names, "ZEROED": _ZEROED, "FIXED": _FIXED, "CAPPED": _CAPPED})
