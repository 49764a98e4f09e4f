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
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import (
    DPSGD,
    MECHANISMS,
    Composed,
    DiscreteGaussian,
    Encoder,
    FedSDP,
    FixedSizeSubsampled,
    Gaussian,
    JointGaussian,
    Laplace,
    LastIterate,
    MatrixFactorization,
    Mechanism,
    Parallel,
    Plan,
    PoissonSubsampled,
    RandomAllocation,
    RandomStopping,
    ReportNoisyMax,
    Shuffled,
    tuning,
)
from hockeystick.mechanisms.base import registered
from tests import stubs
from tests.examples import DESCRIBED

CONVEX: dict[str, Any] = {"examples": 9, "step_size": 0.1, "smoothness": 1}
names = pytest.mark.parametrize("mechanism", DESCRIBED, ids=str)


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
        [str(one), *(f"  {text}" for text in one.assumptions)] for one in (*DESCRIBED, *VARIANTS)
    ]
    assert [line for lines in told for line in lines] == stored


@names
def test_powers_and_products_with_something_else_are_refused(mechanism: Any) -> None:
    for count in (2.5, -1, True, None, "2", math.nan, math.inf, 10**16, 1 + 0j):
        with pytest.raises(
            ParameterError, match=r"^count must be an integer from 0 to 10\^15; got "
        ):
            mechanism**count
    for other in (3, None, "Gaussian", Gaussian, 1.5):
        with pytest.raises(ParameterError, match=r"^the right side of @ must be a mechanism; "):
            mechanism @ other
        with pytest.raises(ParameterError, match=r"^the left side of @ must be a mechanism; "):
            other @ mechanism
