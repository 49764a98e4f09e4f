"""Differential-privacy accounting whose answers are proven intervals.

>>> import hockeystick as hs
>>> plan = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
>>> float(hs.epsilon(plan, delta=1e-5)) < 2.39
True
"""

from hockeystick.accountants import Row, compare, delta, epsilon
from hockeystick.adjacency import Adjacency
from hockeystick.errors import (
    HockeystickError,
    IncompatibleError,
    ParameterError,
    PlanFileError,
    UnsupportedError,
)
from hockeystick.mechanisms import (
    DPSGD,
    Composed,
    Gaussian,
    Mechanism,
    Plan,
    PoissonSubsampled,
    Repeated,
)
from hockeystick.results import Approximate, Certified

__version__ = "0.1.0"

__all__ = [
    "DPSGD",
    "Adjacency",
    "Approximate",
    "Certified",
    "Composed",
    "Gaussian",
    "HockeystickError",
    "IncompatibleError",
    "Mechanism",
    "ParameterError",
    "Plan",
    "PlanFileError",
    "PoissonSubsampled",
    "Repeated",
    "Row",
    "UnsupportedError",
    "compare",
    "delta",
    "epsilon",
]
