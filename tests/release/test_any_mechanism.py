"""What is for one mechanism says so of any other: an answer or one clear error, never another."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import release
from hockeystick.release.samplers import secret_bits
from tests.examples import EXAMPLES

FUNCTIONS: Final = tuple(
    (name, function)
    for name, function in vars(release).items()
    # What bounds contributions takes no mechanism.
    if name in release.__all__ and name != "users_by_partition" and inspect.isfunction(function)
)
# Values of parties in an interval; or values that users may hold, rather than those that they do.
VALUES: Final = {
    "gopa_round": np.full(6, 0.5),
    "gossip_average": np.full(4, 0.5),
    "rappor_error": np.array([0]),
    "rappor_frequencies": np.array([0]),
}
# What each parameter but the mechanism is given.
GIVEN: Final[Mapping[str, Callable[[str], Any]]] = {
    "value": lambda name: np.zeros(10) if name == "multivariate_laplace" else 3,
    "values": lambda name: VALUES.get(name, np.array([0, 1, 1])),
    "categories": lambda _: 3,
    "rng": lambda _: np.random.default_rng(7),
    "reports": lambda name: (
        np.array([[True, False], [False, True]])
        if name.startswith(("unary", "rappor"))
        else np.array([0, 1])
    ),
    "users": lambda name: {"a": 3, "b": 5} if name == "partition_selection" else 100,
    "share": lambda _: 0.3,
    "sensitivity": lambda _: 1.0,
    "points": lambda _: np.zeros((2, 10)),
    "draws": lambda _: 2,
    "count": lambda _: 2,
    "scores": lambda _: [0.5, 3, 1],
    "threshold": lambda _: 10.0,
    "size": lambda _: 3,
    "flip": lambda _: 0.5,
    "cohort": lambda _: 1,
    "entries": lambda _: 2,
    "monotone": lambda _: True,
    "rows": lambda _: np.ones((4, 10)),
    "layers": lambda _: [np.ones((4, 3)), np.ones((4, 2))],
    "norms": lambda _: [1.0, 2.0],
    "gradients": lambda _: np.ones((4, 10)),
    "norm": lambda _: 1.5,
    "keep": lambda _: 0.5,
    "bound": lambda _: 2.0,
    "center": lambda _: 0.5,
    "floor": lambda _: 0.1,
    "components": lambda _: 2,
    "adjacency": lambda _: "replace-one",
    "interval": lambda _: (0.0, 1.0),
    "dropouts": lambda _: [0],
    "rollback": lambda _: True,
    "start": lambda _: [0.0],
    "gradient": lambda _: lambda model, place: model / 2,
    "lipschitz": lambda _: 1.0,
    "radius": lambda _: 1.0,
    "steps": lambda _: 5,
    "visits": lambda _: 2,
    "charge": lambda _: hs.Accountant(),
    "candidates": lambda _: [1, 2],
    "run": lambda _: lambda one: (one, float(one)),
    "bits": lambda _: secret_bits,
}
OTHERS: Final[tuple[Any, ...]] = (None, 1.0, "RAPPOR", hs.mechanisms.RAPPOR, object())


@pytest.mark.parametrize(("name", "function"), FUNCTIONS)
def test_every_mechanism_has_an_answer_or_one_clear_error(
    name: str, function: Callable[..., Any]
) -> None:
    parameters = list(inspect.signature(function).parameters)
    assert parameters[0] == "mechanism"
    given = {one: GIVEN[one](name) for one in parameters[1:]}
    answers, told = 0, list[str]()
    for mechanism in (
        *EXAMPLES,
        hs.mechanisms.UnaryEncoding(0.0),
        hs.RandomizedResponse(0.0),
        hs.mechanisms.PartitionSelection(hs.DiscreteGaussian(10), threshold=51),
        *OTHERS,
    ):
        try:
            function(mechanism, **given)
        except hs.errors.HockeystickError as error:
            told.append(str(error))
        else:
            answers += 1
    assert answers > 0
    assert all(len(one.splitlines()) == 1 for one in told)
