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

import hockeystick as hs
from hockeystick import mechanisms as m
from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import registered
from tests import stubs
from tests.examples import DESCRIBED

CONVEX: dict[str, Any] = {"examples": 9, "step_size": 0.1, "smoothness": 1}
names = pytest.mark.parametrize("mechanism", DESCRIBED, ids=str)


def test_the_registry_names_every_concrete_mechanism_by_its_own_name() -> None:
    exported = {
        name: item
        for name in m.__all__
        if isinstance(item := getattr(m, name), type)
        and issubclass(item, hs.Mechanism)
        and item not in (hs.Mechanism, m.Plan)
    }
    assert dict(m.MECHANISMS) == exported


def test_every_concrete_mechanism_of_the_package_is_registered() -> None:
    """Whoever writes a mechanism and forgets the decorator is told here."""
    written = {
        kind.__name__
        for kind in _descendants(hs.Mechanism)
        if kind.__module__.startswith("hockeystick.mechanisms.") and not inspect.isabstract(kind)
    }
    assert written == set(m.MECHANISMS)


def _descendants(kind: type[Any]) -> Iterator[type[Any]]:
    for one in kind.__subclasses__():
        yield one
        yield from _descendants(one)


def test_two_mechanisms_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^hockeystick.mechanisms.noise.gaussian has a Gaussian"):
        registered(type("Gaussian", (), {}))
    assert m.MECHANISMS["Gaussian"] is hs.Gaussian
    assert registered(hs.Gaussian) is hs.Gaussian


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
VARIANTS: tuple[hs.Mechanism, ...] = (
    hs.PoissonSubsampled(hs.Gaussian(2), 1e-6, "zero-out"),
    hs.PoissonSubsampled(hs.Gaussian(1) @ hs.Gaussian(2), 0.5),
    hs.PoissonSubsampled(hs.Gaussian(1) ** 3, 0.5),
    hs.PoissonSubsampled(hs.PoissonSubsampled(hs.Gaussian(1), 0.5), 0.25),
    hs.PoissonSubsampled(m.JointGaussian((1.0, 7.2)), 0.01) ** 10,
    hs.Composed((hs.Gaussian(1),) * 5),
    (hs.Gaussian(1) @ hs.Gaussian(2)) ** 5,
    hs.Gaussian(1) @ hs.Gaussian(2) ** 5,
    hs.DiscreteGaussian(1 / 3, 2),
    m.ReportNoisyMax(2),
    hs.Shuffled(hs.Gaussian(2), 1, "replace-one"),
    hs.Shuffled(hs.Gaussian(1.5), 100, clipping="batch") ** 3,
    hs.FixedSizeSubsampled(hs.Gaussian(0.5), 3, 30, "zero-out", clipped=True),
    m.RandomAllocation(hs.Gaussian(2), 1000, 3),
    m.RandomStopping(hs.DPSGD(**SIZES) @ hs.Laplace(3.0) ** 2, m.tuning.Binomial(8, 0.25)),
    m.RandomStopping(hs.Gaussian(2), m.tuning.TruncatedNegativeBinomial(0, 0.25)),
    m.RandomStopping(hs.Gaussian(2), m.tuning.TruncatedNegativeBinomial(2, 0.25)),
    m.MatrixFactorization(2.5, m.Encoder.square_root(64, participations=4, separation=16)),
    m.MatrixFactorization(2.5, m.Encoder.square_root(64, bands=2, participations=4)),
    m.MatrixFactorization(2.5, m.Encoder.banded_inverse([1, -0.5], 9)),
    m.MatrixFactorization(2.5, m.Encoder.buffered_toeplitz([0.5], [0.25], 9)),
    hs.Parallel((hs.Gaussian(2),) * 2 + (hs.Laplace(1),) * 9, "hospital"),
    m.LastIterate(2, 10, **CONVEX, batch_size=3, diameter=3, gradient_bound=0.5, convexity=0.25),
    m.LastIterate(2, 10, **CONVEX, batch_size=3, batches="fixed-size"),
    *(
        hs.DPSGD(**SIZES, sampling=sampling, adjacency=adjacency)
        for sampling, adjacency in (
            ("poisson", "add-remove"),
            ("poisson", "replace-one"),
            ("fixed-size", "replace-one"),
            ("with-replacement", "replace-one"),
        )
    ),
    hs.DPSGD(**SIZES, clipping="batch"),
    hs.DPSGD(**SIZES, batch_cap=60),
    hs.DPSGD(**SIZES, examples_per_user=3),
    hs.DPSGD(**SIZES, extra=hs.Gaussian(20.0)),
    m.FedSDP(**CLIENTS, sampling="poisson"),
    m.FedSDP(**CLIENTS, sampling="revealed", adjacency="zero-out"),
    m.FedSDP(**(CLIENTS | {"clients_per_round": 10}), sampling="poisson"),
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
    for other in (3, None, "Gaussian", hs.Gaussian, 1.5):
        with pytest.raises(ParameterError, match=r"^the right side of @ must be a mechanism; "):
            mechanism @ other
        with pytest.raises(ParameterError, match=r"^the left side of @ must be a mechanism; "):
            other @ mechanism
