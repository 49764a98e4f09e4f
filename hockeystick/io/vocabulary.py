"""What can be described outside of Python, by the names that files and calls have for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hockeystick.mechanisms import (
    MECHANISMS,
    BandedInverse,
    BufferedToeplitz,
    Encoder,
    Graph,
    Mechanism,
    SquareRoot,
    Toeplitz,
    schedules,
    tuning,
)
from hockeystick.mechanisms.selection.tuning import RunCount
from hockeystick.mechanisms.streams.strategies import Strategy
from hockeystick.mechanisms.training.schedules import Schedule
from hockeystick.notions import NOTIONS

# What a plan file says beside its tables.
TOP_KEYS: Final = ("title", "source", "notes", "delta", "epsilon")
# Keys of texts, in which nothing is computed.
TEXTS: Final = (*TOP_KEYS[:3], "split")
IN_PYTHON_ONLY: Final = "FDP"
# What is said where the adjacency of a plan is to be another, and the plan has none.
NO_ADJACENCY: Final = (
    "this plan has no adjacency: its numbers are those of the neighbours meant, as noise is "
    "over the sensitivity for them (sqrt(2) of a histogram where one record is replaced); "
    "leave adjacency out"
)
# What a file can describe: a trade-off function is no text.
RELEASES: Final[Mapping[str, type[Mechanism]]] = {
    name: kind for name, kind in {**MECHANISMS, **NOTIONS}.items() if name != IN_PYTHON_ONLY
}
ENCODERS: Final[Mapping[str, Callable[..., Encoder]]] = {
    "banded_inverse": Encoder.banded_inverse,
    "buffered_toeplitz": Encoder.buffered_toeplitz,
    "matrix": Encoder.of_matrix,
    "square_root": Encoder.square_root,
    "toeplitz": Encoder.toeplitz,
    "tree": Encoder.tree,
}
STRATEGIES: Final[Mapping[str, type[Strategy]]] = {
    "banded_inverse": BandedInverse,
    "buffered_toeplitz": BufferedToeplitz,
    "square_root": SquareRoot,
    "toeplitz": Toeplitz,
}
GRAPHS: Final[Mapping[str, Callable[..., Graph]]] = {
    "complete": Graph.complete,
    "cycle": Graph.cycle,
    "edges": Graph,
    "path": Graph.path,
    "random-out": Graph.random_out,
}
SCHEDULES: Final[Mapping[str, type[Schedule]]] = {
    "constant": schedules.Constant,
    "cyclic": schedules.Cyclic,
    "exponential": schedules.Exponential,
    "linear": schedules.Linear,
    "piecewise": schedules.Piecewise,
    "staircase": schedules.Staircase,
    "values": schedules.Values,
}
RUN_COUNTS: Final[Mapping[str, type[RunCount]]] = {
    "binomial": tuning.Binomial,
    "poisson": tuning.Poisson,
    "truncated-negative-binomial": tuning.TruncatedNegativeBinomial,
}
# Fields that are tables of a kind, and the kinds that there are.
KINDS: Final[Mapping[str, Mapping[str, Callable[..., object]]]] = {
    "batch_schedule": SCHEDULES,
    "distribution": RUN_COUNTS,
    "encoder": ENCODERS,
    "graph": GRAPHS,
    "schedule": SCHEDULES,
}
# Of a DPSGD, one of each pair is given: to set one is to take the other away.
ALTERNATIVES: Final = {
    "batch_size": "rate",
    "rate": "batch_size",
    "epochs": "steps",
    "steps": "epochs",
}
