"""Privacy-loss distributions on a tilted lattice, composed by fast Fourier transforms."""

from __future__ import annotations

from hockeystick.accountants.prv.accountant import PRV
from hockeystick.accountants.prv.lattice import Lattice

__all__ = ["PRV", "Lattice"]
