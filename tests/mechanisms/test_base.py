"""What every mechanism has in common; the examples cover the whole registry."""

import copy
import dataclasses
import inspect
import math
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hockeystick import mechanisms
from hockeystick._modules import import_modules
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import (
    DPSGD,
    GOPA,
    MECHANISMS,
    RAPPOR,
    AboveThreshold,
    BatchClipped,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Encoder,
    Exponential,
    FedAlphaCDP,
    FedCDP,
    FederatedClustering,
    FedSDP,
    FixedSizeSubsampled,
    Gaussian,
    GaussianMixture,
    GaussianSequence,
    GossipAveraging,
    Graph,
    JointGaussian,
    Laplace,
    LastIterate,
    LocalTraining,
    MatrixFactorization,
    Mechanism,
    MultivariateLaplace,
    NoisyIterations,
    Parallel,
    PermuteAndFlip,
    Plan,
    PoissonSubsampled,
    PriFedSync,
    PrivateCovariance,
    RandomAllocation,
    RandomizedResponse,
    RandomStopping,
    Repeated,
    ReportNoisyMax,
    RevealedRound,
    RevealedSample,
    Shuffled,
    ShuffledReports,
    SinhNormal,
    Skellam,
    SparseVector,
    TokenWalk,
    TreeAggregation,
    TruncatedPoissonSubsampled,
    UnaryEncoding,
    WithReplacementSubsampled,
    tuning,
)
from hockeystick.mechanisms.registry import registered
from tests import stubs
from tests.examples import DESCRIBED

STEP = PoissonSubsampled(Gaussian(1.1), rate=256 / 60_000)
CONVEX: dict[str, Any] = {"examples": 9, "step_size": 0.1, "smoothness": 1}
LOCAL = LocalTraining(examples=10, batch_size=3, noise_multiplier=2, local_steps=5)
CHOSEN: tuple[Mechanism, ...] = (
    FixedSizeSubsampled(Gaussian(2), 3, 10),
    RandomAllocation(Gaussian(2), 10),
    RandomStopping(Gaussian(2), tuning.TruncatedNegativeBinomial(1, 0.1)),
    RandomStopping(STEP**10, tuning.Poisson(5)),
    FedSDP(
        noise_multiplier=2, total_clients=10, clients_per_round=2, rounds=3, sampling="fixed-size"
    ),
    FedCDP(
        noise_multiplier=2,
        total_clients=10,
        clients_per_round=2,
        examples_per_client=8,
        batch_size=4,
        local_steps=5,
        rounds=3,
        sampling="two-stage",
    ),
    FedAlphaCDP(
        noise_multiplier=2,
        total_clients=10,
        clients_per_round=2,
        examples_per_client=8,
        batch_size=4,
        local_steps=5,
        rounds=3,
        sampling="poisson",
        adjacency="replace-one",
    ),
    JointGaussian((2, 3)),
    PrivateCovariance(2, 5),
    RevealedRound(STEP**10, 0.5),
    RevealedSample(Gaussian(2), 0.5),
    Shuffled(Gaussian(2), 10),
    GOPA(2, 3, Graph.cycle(5), colluders=(1,)),
    GossipAveraging(2, Graph.path(5), 4, party=3, observers=(0,)),
    NoisyIterations(2, 10, step_size=0.1, smoothness=1),
    LastIterate(2, 10, examples=9, step_size=0.1, smoothness=1),
    ShuffledReports(RandomizedResponse(1, 3), 20),
    TokenWalk(2, 10, step_size=0.1, smoothness=1),
    TruncatedPoissonSubsampled(Gaussian(2), 0.5, 3, 10),
    WithReplacementSubsampled(Gaussian(2), 3, 10),
    BatchClipped(PoissonSubsampled(Gaussian(2), 0.5), 10),
    Gaussian(1.1),
    Gaussian(math.inf),
    STEP,
    PoissonSubsampled(Gaussian(2), 0.5, "zero-out"),
    Composed((Gaussian(1), STEP)),
    Repeated(STEP, 14_062),
    Repeated(Composed((Gaussian(1), STEP)), 0),
    DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1),
    DPSGD(rate=1, steps=10, noise_multiplier=0, adjacency="replace-one"),
    AboveThreshold(2.0, 4.0),
    DiscreteGaussian(2, 3),
    DiscreteLaplace(5, 3),
    Exponential(0.5),
    GaussianMixture(2.0, (0.0, 1.0, 2.0), (0.9, 0.07, 0.03)),
    GaussianSequence((2.0, 1.0), 0.01),
    Laplace(0.7),
    MatrixFactorization(2.0, Encoder.square_root(64)),
    FederatedClustering(3.0, 11, 1.0, 20),
    MultivariateLaplace(0.5, 3),
    PermuteAndFlip(0.5),
    LOCAL,
    Parallel((Gaussian(2), Laplace(1)), "hospital"),
    PriFedSync(clients=LOCAL, rounds=10),
    PriFedSync(clients=(LOCAL, LOCAL), rounds=10, client_rate=0.5),
    RAPPOR(0.5, 2),
    RandomizedResponse(1, 10),
    ReportNoisyMax(0.5, "laplace"),
    SinhNormal(0.1, 40),
    Skellam(10),
    SparseVector(2.0, 4.0, positives=3),
    TreeAggregation(3.0, 1000),
    UnaryEncoding(1, "optimized"),
)
EXAMPLES = (
    *CHOSEN,
    *(one for one in DESCRIBED if type(one) not in {type(chosen) for chosen in CHOSEN}),
)
names = pytest.mark.parametrize("mechanism", EXAMPLES, ids=str)


def test_every_registered_mechanism_has_an_example_here() -> None:
    assert {type(example).__name__ for example in EXAMPLES} == set(MECHANISMS)


def test_the_registry_names_every_concrete_mechanism_by_its_own_name() -> None:
    exported = {
        name: item
        for name in mechanisms.__all__
        if isinstance(item := getattr(mechanisms, name), type)
        and issubclass(item, Mechanism)
        and item not in (Mechanism, Plan)
    }
    assert dict(MECHANISMS) == exported


def test_every_concrete_mechanism_of_the_package_is_registered() -> None:
    """Whoever writes a mechanism and forgets the decorator is told here."""
    import_modules("hockeystick.mechanisms")
    written = {
        kind.__name__
        for kind in _descendants(Mechanism)
        if kind.__module__.startswith("hockeystick.mechanisms.") and not inspect.isabstract(kind)
    }
    assert written == set(MECHANISMS)


def _descendants(kind: type[Any]) -> Iterator[type[Any]]:
    for one in kind.__subclasses__():
        yield one
        yield from _descendants(one)


def test_two_mechanisms_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^hockeystick.mechanisms.noise.gaussian has a Gaussian"):
        registered(type("Gaussian", (), {}))
    assert MECHANISMS["Gaussian"] is Gaussian
    assert registered(Gaussian) is Gaussian


@pytest.mark.parametrize("package", stubs.STUBS)
def test_type_checkers_know_every_registered_name(package: str) -> None:
    written = stubs.file_of(package).read_text(encoding="utf-8")
    assert written == stubs.stub(package), "`python -m tests.stubs` writes what is missing"


@pytest.mark.parametrize("kind", [Mechanism, Plan])
def test_the_bases_are_abstract(kind: Any) -> None:
    with pytest.raises(TypeError, match="abstract"):
        kind()


@names
def test_mechanisms_can_be_pickled_copied_and_hashed(mechanism: Any) -> None:
    for twin in (
        pickle.loads(pickle.dumps(mechanism)),
        copy.copy(mechanism),
        copy.deepcopy(mechanism),
        dataclasses.replace(mechanism),
    ):
        assert twin == mechanism
        assert hash(twin) == hash(mechanism)
        assert str(twin) == str(mechanism)


# An encoder stands for a matrix, of which its repr is a summary.
@pytest.mark.parametrize(
    "mechanism", [one for one in EXAMPLES if not isinstance(one, MatrixFactorization)], ids=str
)
def test_the_repr_builds_the_same_mechanism_again(mechanism: Any) -> None:
    names = {**MECHANISMS, **vars(tuning), "Graph": Graph, "inf": math.inf}
    assert eval(repr(mechanism), names) == mechanism


SIZES: dict[str, Any] = {"examples": 1000, "batch_size": 10, "steps": 9, "noise_multiplier": 2.0}
CLIENTS: dict[str, Any] = {
    "noise_multiplier": 2,
    "total_clients": 10,
    "clients_per_round": 2,
    "rounds": 3,
}
VARIANTS: tuple[Mechanism, ...] = (
    PoissonSubsampled(Gaussian(2), 1e-6, "zero-out"),
    PoissonSubsampled(Gaussian(1) @ Gaussian(2), 0.5),
    PoissonSubsampled(Gaussian(1) ** 3, 0.5),
    PoissonSubsampled(PoissonSubsampled(Gaussian(1), 0.5), 0.25),
    PoissonSubsampled(JointGaussian((1.0, 7.2)), 0.01) ** 10,
    Composed((Gaussian(1),) * 5),
    (Gaussian(1) @ Gaussian(2)) ** 5,
    Gaussian(1) @ Gaussian(2) ** 5,
    DiscreteGaussian(1 / 3, 2),
    ReportNoisyMax(2),
    Shuffled(Gaussian(2), 1, "replace-one"),
    Shuffled(Gaussian(1.5), 100, clipping="batch") ** 3,
    FixedSizeSubsampled(Gaussian(0.5), 3, 30, "zero-out", clipped=True),
    RandomAllocation(Gaussian(2), 1000, 3),
    RandomStopping(DPSGD(**SIZES) @ Laplace(3.0) ** 2, tuning.Binomial(8, 0.25)),
    RandomStopping(Gaussian(2), tuning.TruncatedNegativeBinomial(0, 0.25)),
    RandomStopping(Gaussian(2), tuning.TruncatedNegativeBinomial(2, 0.25)),
    MatrixFactorization(2.5, Encoder.square_root(64, participations=4, separation=16)),
    MatrixFactorization(2.5, Encoder.square_root(64, bands=2, participations=4)),
    MatrixFactorization(2.5, Encoder.banded_inverse([1, -0.5], 9)),
    MatrixFactorization(2.5, Encoder.buffered_toeplitz([0.5], [0.25], 9)),
    Parallel((Gaussian(2),) * 2 + (Laplace(1),) * 9, "hospital"),
    LastIterate(2, 10, **CONVEX, batch_size=3, diameter=3, gradient_bound=0.5, convexity=0.25),
    LastIterate(2, 10, **CONVEX, batch_size=3, batches="fixed-size"),
    *(
        DPSGD(**SIZES, sampling=sampling, adjacency=adjacency)
        for sampling, adjacency in (
            ("poisson", "add-remove"),
            ("poisson", "replace-one"),
            ("fixed-size", "replace-one"),
            ("with-replacement", "replace-one"),
        )
    ),
    DPSGD(**SIZES, clipping="batch"),
    DPSGD(**SIZES, batch_cap=60),
    DPSGD(**SIZES, examples_per_user=3),
    DPSGD(**SIZES, extra=Gaussian(20.0)),
    FedSDP(**CLIENTS, sampling="poisson"),
    FedSDP(**CLIENTS, sampling="revealed", adjacency="zero-out"),
    FedSDP(**(CLIENTS | {"clients_per_round": 10}), sampling="poisson"),
)


def test_texts_and_assumptions_are_as_stored() -> None:
    stored = Path(__file__).with_name("texts.txt").read_text("utf-8").splitlines()
    told = [
        [str(one), *(f"  {text}" for text in one.assumptions)] for one in (*EXAMPLES, *VARIANTS)
    ]
    assert [line for lines in told for line in lines] == stored


@names
def test_mechanisms_never_change(mechanism: Any) -> None:
    field = dataclasses.fields(mechanism)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(mechanism, field, None)
    assert not hasattr(mechanism, "__dict__")


def test_different_mechanisms_are_unequal() -> None:
    assert len(set(EXAMPLES)) == len(EXAMPLES)


@names
def test_a_power_is_a_repetition_and_a_product_is_a_composition(mechanism: Any) -> None:
    assert mechanism**3 == Repeated(mechanism, 3)
    assert mechanism @ Gaussian(5) == Composed((mechanism, Gaussian(5)))


@names
def test_a_power_that_is_no_count_is_refused(mechanism: Any) -> None:
    for count in (2.5, -1, True, None, "2", math.nan, math.inf, 10**16, 1 + 0j):
        with pytest.raises(
            ParameterError, match=r"^count must be an integer from 0 to 10\^15; got "
        ):
            mechanism**count


def test_a_power_may_be_an_integral_float() -> None:
    power = Gaussian(1) ** 1e4
    assert power == Gaussian(1) ** 10_000
    assert type(power.count) is int


@names
def test_a_product_with_something_else_is_refused_on_either_side(mechanism: Any) -> None:
    for other in (3, None, "Gaussian", Gaussian, 1.5):
        with pytest.raises(ParameterError, match=r"^the right side of @ must be a mechanism; "):
            mechanism @ other
        with pytest.raises(ParameterError, match=r"^the left side of @ must be a mechanism; "):
            other @ mechanism


@names
def test_plans_and_only_plans_stand_for_a_mechanism(mechanism: Any) -> None:
    assert isinstance(mechanism, Plan) == hasattr(mechanism, "mechanism")
    if isinstance(mechanism, Plan):
        assert isinstance(mechanism.mechanism, Mechanism)
        assert mechanism.assumptions


@names
def test_assumptions_are_sentences(mechanism: Any) -> None:
    assert all(text.endswith(".") for text in mechanism.assumptions)
