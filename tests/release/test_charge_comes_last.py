"""A release that is refused for an argument is not charged: every check comes before the charge."""

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.errors import HockeystickError
from tests.release.bits import none_left

m, release = hs.mechanisms, hs.release
CONVEX: Any = {"step_size": 0.1, "smoothness": 1}
ROWS = np.linspace(-1.0, 1.0, 40).reshape(20, 2)
HUB = m.Graph(6, [(0, 1), (1, 2), (1, 3), (1, 4), (1, 5)])
ONE = hs.Gaussian(5.0)
BOTH = m.JointGaussian((2, 4))
FACTORIZATION = m.MatrixFactorization(4.0, m.Encoder.square_root(8))
COVARIANCE = m.PrivateCovariance(5, columns=2, adjacency="replace-one")
FIXED = {"rows": ROWS, "bound": 2.0, "center": [0.0, 0.0], "adjacency": "replace-one"}
PRUNED = {"gradients": ROWS, "norm": 1.0}
STEPS = {"start": [0.0], "gradient": lambda w, t: w / 4, "lipschitz": 1.0, "radius": 2.0}
FEW = m.tuning.TruncatedNegativeBinomial.of_mean(2)
SEARCH = {"candidates": [1, 2], "run": lambda one: (one, 1.0)}
CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "above_threshold": (m.AboveThreshold(1.0, 2.0), {"threshold": 1.0, "sensitivity": 1}),
    "covariance": (COVARIANCE, {"rows": ROWS, "bound": 2.0, "size": None, "center": None}),
    "discrete_gaussian": (hs.DiscreteGaussian(3.0), {"value": [3], "entries": 1}),
    "exponential": (m.Exponential(1.0), {"scores": [1, 2], "sensitivity": 1, "monotone": False}),
    "gaussian": (ONE, {"value": 2.5, "sensitivity": 1}),
    "geometric": (hs.DiscreteLaplace(2.0), {"value": [3], "entries": 1}),
    "gopa_round": (
        m.GOPA(0.5, 2.0, HUB),
        {"values": [0.5] * 6, "interval": (0.0, 1.0), "dropouts": (3,), "rollback": True},
    ),
    "gossip_average": (
        m.GossipAveraging(0.5, HUB, 5, party=2, observers=[0]),
        {"values": [0.5] * 6, "interval": (0.0, 1.0)},
    ),
    "grid_search": (ONE, SEARCH),
    "laplace": (hs.Laplace(2.0), {"value": 2.5, "sensitivity": 1}),
    "layered_sum": (BOTH, {"layers": [ROWS, ROWS], "norms": [1.0, 0.1]}),
    "matrix_factorization": (FACTORIZATION, {"size": 2, "sensitivity": 1}),
    "mean": (ONE, {**FIXED, "size": None}),
    "multivariate_laplace": (
        m.MultivariateLaplace(1.0, 2),
        {"value": [0.5, 1.0], "sensitivity": 1},
    ),
    "noisy_iterations": (m.NoisyIterations(2.0, 5, **CONVEX), STEPS),
    "normalisation": (BOTH, {**FIXED, "size": None, "floor": None}),
    "partition_selection": (m.PartitionSelection(hs.DiscreteGaussian(3.0), 9), {"users": {"a": 3}}),
    "permute_and_flip": (
        m.PermuteAndFlip(1.0),
        {"scores": [1, 2], "sensitivity": 1, "monotone": False},
    ),
    "principal_components": (
        COVARIANCE,
        {"rows": ROWS, "bound": 2.0, "components": 1, "size": None, "center": None},
    ),
    "random_search": (m.RandomStopping(ONE, FEW), SEARCH),
    "randomly_pruned_sum": (ONE, {**PRUNED, "keep": 0.5}),
    "report_noisy_max": (
        m.ReportNoisyMax(1.0),
        {"scores": [1, 2], "sensitivity": 1, "monotone": False},
    ),
    "selective_sum": (ONE, {**PRUNED, "keep": 0.5}),
    "sinh_normal": (m.SinhNormal(0.1, 40), {"value": 2.5, "sensitivity": 1, "entries": 1}),
    "sinh_normal_vector": (m.SinhNormal(0.1, 40), {"value": [2.5, 1.0], "sensitivity": 1}),
    "skellam": (m.Skellam(9.0), {"value": [3], "entries": 1}),
    "sparse_vector": (
        m.SparseVector(20.0, 40.0, positives=2),
        {"threshold": 1.0, "sensitivity": 1},
    ),
    "token_walk": (m.TokenWalk(5.0, 20, **CONVEX), {**STEPS, "steps": 5, "visits": 2}),
    "tree_aggregation": (m.TreeAggregation(5.0, 8), {"size": 2, "sensitivity": 1}),
}
# What one call costs, where it is more than the mechanism once.
COUNTED = {"grid_search": 2, "token_walk": 2}
BAD: tuple[Any, ...] = (
    *(object(), None, True, "x", b"x", "", 1j, -1, 0, 2.5, 1e400, float("nan")),
    *(10**400, -(10**400), [], [None], [[]], [float("nan")], ["x"], [10**400], {}, {"x": 1}, ()),
    *(2**53 + 1, [2**53 + 1, 0.5], 2**62 + 1, [True], ["x", 1.0], np.float64("inf"), 1e300),
    np.ma.masked_array([[1.0, 5e5]], mask=True),
    *(np.array("x"), np.array([object()]), np.zeros((0, 2)), np.zeros((2, 2, 2)), ROWS * np.nan),
    *((1.0, 0.0), (0.0, 1.0, 2.0), [1e308, 1e308], [[1.0], [1.0, 2.0]], np.ma.array([1.0])),
)


# Encoders without room for the noise of the worst signs.
NO_ROOM = (
    m.Encoder.of_matrix([[1.0]]),
    *(m.Encoder.toeplitz(*one) for one in (([0, 1], 5), ([1, 1.5], 1000), ([1, -3], 100))),
    *(m.Encoder.toeplitz(one, 2) for one in ([1, 1e15], [1e-300, 1e300])),
    m.Encoder.banded_inverse([1, -2], 2000),
    m.Encoder.buffered_toeplitz([1e5], [0.5], 1000),
)
# What has the right kind, and too much noise to be drawn, or parameters without a proof.
UNDRAWN: dict[str, tuple[Any, ...]] = {
    "above_threshold": (m.AboveThreshold(math.inf, 1.0),),
    "covariance": tuple(m.PrivateCovariance(z, 2, "replace-one") for z in (math.inf, 2.0**23 + 1)),
    "discrete_gaussian": (hs.DiscreteGaussian(math.inf), hs.DiscreteGaussian(2.0**45)),
    "gaussian": (hs.Gaussian(math.inf), hs.Gaussian(2.0**44)),
    "geometric": (hs.DiscreteLaplace(math.inf), hs.DiscreteLaplace(2.0**45)),
    "gopa_round": tuple(m.GOPA(z, w, HUB) for z, w in ((1, math.inf), (math.inf, 1), (1e15, 1))),
    "gossip_average": tuple(
        m.GossipAveraging(z, HUB, t, 2, [0]) for z, t in ((math.inf, 5), (1e15, 5), (1, 10**6))
    ),
    "laplace": (hs.Laplace(math.inf), hs.Laplace(2.0**44)),
    "layered_sum": (m.JointGaussian((1, math.inf)), m.JointGaussian((1, 1, 1))),
    "matrix_factorization": (
        *(replace(FACTORIZATION, noise_multiplier=z) for z in (math.inf, 1e15, 1e-15, 5e-324)),
        *(m.MatrixFactorization(1.0, one) for one in NO_ROOM),
    ),
    "mean": (hs.Gaussian(math.inf), hs.Gaussian(2.0**30), m.JointGaussian((1, 1, 1))),
    "normalisation": tuple(map(m.JointGaussian, ((1,), (1, math.inf), (1, 2.0**20)))),
    "partition_selection": (
        m.PartitionSelection(hs.Gaussian(3.0), 9),
        m.PartitionSelection(hs.DiscreteGaussian(2.0**50), 9),
    ),
    "random_search": (m.RandomStopping(ONE, m.tuning.Poisson(2.0**31)),),
    "randomly_pruned_sum": (hs.Gaussian(math.inf),),
    "selective_sum": (hs.Gaussian(math.inf),),
    "sinh_normal": (m.SinhNormal(2.0**-100, 2.0**60),),
    "skellam": (m.Skellam(math.inf), m.Skellam(2.0**45)),
    "sparse_vector": (m.SparseVector(math.inf, 1.0, positives=2),),
    "tree_aggregation": (m.TreeAggregation(math.inf, 8),),
}
UNDRAWN_NAMES = r"^(mechanism|sigma|scale|variance|layers|noise_mult|pairwise_mult|rounds|mean)"


@pytest.mark.parametrize("name", UNDRAWN)
def test_noise_that_cannot_be_drawn_is_not_charged(name: str) -> None:
    _, arguments = CALLS[name]
    for mechanism in UNDRAWN[name]:
        account = hs.Accountant()
        with pytest.raises(hs.errors.ParameterError, match=UNDRAWN_NAMES):
            getattr(release, name)(mechanism, **arguments, charge=account)
        assert len(account) == 0


def charging() -> list[str]:
    return [
        name
        for name in release.__all__
        if inspect.isfunction(getattr(release, name))
        and "charge" in inspect.signature(getattr(release, name)).parameters
    ]


def test_every_release_that_charges_is_asked() -> None:
    assert sorted(CALLS) == sorted(charging())
    for name, (_, arguments) in CALLS.items():
        taken = set(inspect.signature(getattr(release, name)).parameters)
        assert taken - {"mechanism", "charge", "bits"} == set(arguments), name


@pytest.mark.parametrize("name", CALLS)
def test_a_release_that_is_right_is_charged_once(name: str) -> None:
    mechanism, arguments = CALLS[name]
    account = hs.Accountant()
    getattr(release, name)(mechanism, **arguments, charge=account)
    # The one is charged for its divergences, the other for those who dropped out.
    if name not in ("sinh_normal_vector", "gopa_round"):
        count = COUNTED.get(name, 1)
        assert str(account.plan) == str(mechanism if count == 1 else mechanism**count)


def refused(release_one: Callable[..., object], mechanism: Any, arguments: Any, name: str) -> str:
    """Return what went wrong with a bad argument, in words; nothing if all is as it should be."""
    account = hs.Accountant()
    try:
        release_one(mechanism, **arguments, charge=account)
    except HockeystickError as error:
        named = isinstance(error, hs.errors.IncompatibleError) or error.args[0].startswith(name)
        if not named or len(str(error).splitlines()) != 1:
            return f"said {error}"
        return f"charged, then {error}" if len(account) else ""
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    return "" if len(account) else "not charged"


@pytest.mark.parametrize("name", CALLS)
def test_a_release_that_is_refused_is_not_charged(name: str) -> None:
    mechanism, arguments = CALLS[name]
    release_one = getattr(release, name)
    wrong = [
        (argument, repr(bad)[:40], said)
        for argument in arguments
        for bad in BAD
        if (said := refused(release_one, mechanism, arguments | {argument: bad}, argument))
    ]
    others = (*(found for found, _ in CALLS.values()), *BAD)
    wrong += [
        ("mechanism", repr(other)[:40], said)
        for other in others
        if type(other) is not type(mechanism)
        and (said := refused(release_one, other, arguments, "mechanism"))
    ]
    assert wrong == []


@pytest.mark.parametrize("name", CALLS)
def test_where_a_charge_is_refused_nothing_is_drawn(name: str) -> None:
    mechanism, arguments = CALLS[name]
    asked, release_one = list[Any](), getattr(release, name)

    class Refusing:
        def step(self, what: Any) -> None:
            asked.append(what)
            raise InterruptedError

    drawn = {"bits": none_left} if "bits" in inspect.signature(release_one).parameters else {}
    if name == "random_search":  # the number of runs is drawn first, and nothing shows it
        drawn = {}
    with pytest.raises(InterruptedError):
        release_one(mechanism, **arguments, charge=Refusing(), **drawn)
    assert len(asked) == 1


@pytest.mark.parametrize("charge", [object(), hs.Accountant, 3, "x", {}])
@pytest.mark.parametrize("name", CALLS)
def test_what_cannot_be_charged_is_refused(name: str, charge: Any) -> None:
    mechanism, arguments = CALLS[name]
    with pytest.raises(hs.errors.ParameterError, match=r"^charge must be an Accountant"):
        getattr(release, name)(mechanism, **arguments, charge=charge)


def test_what_is_not_charged_takes_its_own_mechanism_alone() -> None:
    for name in release.__all__:
        ask = getattr(release, name)
        if not inspect.isfunction(ask) or name in CALLS or name == "users_by_partition":
            continue
        _, *needed = inspect.signature(ask).parameters.values()
        given = [1 for one in needed if one.default is one.empty]
        for other in (hs.ZCDP(1.0), None, 1.0, "RAPPOR", type(ONE), object()):
            with pytest.raises(hs.errors.ParameterError, match=r"^mechanism must be"):
                ask(other, *given)
