"""Differential-privacy accounting whose answers are proven intervals.

>>> import hockeystick as hs
>>> plan = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
>>> float(hs.epsilon(plan, delta=1e-5)) < 2.39
True
"""

import sys
from typing import TYPE_CHECKING

from hockeystick import calibration, errors, mechanisms, notions, release, tradeoffs
from hockeystick._moved import install, moved_name
from hockeystick._version import __version__ as __version__
from hockeystick.accountants import compare, delta, epsilon, tradeoff
from hockeystick.adjacency import Adjacency
from hockeystick.answers import verify
from hockeystick.calibration import Accountant, Calibrated, calibrate, sweep
from hockeystick.conversions import convert
from hockeystick.errors import HockeystickError
from hockeystick.io import load_plan, save_plan
from hockeystick.mechanisms import (
    DPSGD,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    FixedSizeSubsampled,
    Gaussian,
    Laplace,
    Mechanism,
    Parallel,
    PoissonSubsampled,
    RandomizedResponse,
    Repeated,
    Shuffled,
    federated,
    schedules,
)
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, PureDP, RenyiDP
from hockeystick.results import Approximate, Certified

__all__ = [
    "DPSGD",
    "FDP",
    "GDP",
    "TCDP",
    "ZCDP",
    "Accountant",
    "Adjacency",
    "ApproxDP",
    "Approximate",
    "Calibrated",
    "Certified",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "FixedSizeSubsampled",
    "Gaussian",
    "HockeystickError",
    "Laplace",
    "Mechanism",
    "Parallel",
    "PoissonSubsampled",
    "PureDP",
    "RandomizedResponse",
    "RenyiDP",
    "Repeated",
    "Shuffled",
    "calibrate",
    "calibration",
    "compare",
    "convert",
    "delta",
    "epsilon",
    "errors",
    "federated",
    "load_plan",
    "mechanisms",
    "notions",
    "release",
    "save_plan",
    "schedules",
    "sweep",
    "tradeoff",
    "tradeoffs",
    "verify",
]

install(sys.modules[__name__])

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return what has moved to a room, with a warning that says where it went."""
        return moved_name(__name__, name)
