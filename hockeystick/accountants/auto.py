"""All accountants by their names; "auto" takes closed forms, contours, lattices and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hockeystick.accountants.base import Accountant
from hockeystick.accountants.choice import Auto, Parts
from hockeystick.accountants.classical import Advanced, Basic, ZeroConcentrated
from hockeystick.accountants.closed_form import ClosedForm
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.limits import BerryEsseen, Edgeworth, GaussianLimit
from hockeystick.accountants.prv import PRV
from hockeystick.accountants.rdp import RDP, Moments
from hockeystick.accountants.selection import Selection

# For a rare tail a lattice takes a fraction of the time of a smoothed contour.
_EXACT: Final = (ClosedForm(), Selection(), Contour(smooths=False), PRV(), Contour())
_BOUNDS: Final = (Parts(), RDP(), ZeroConcentrated())
AUTO: Final = Auto((*_EXACT, *_BOUNDS))
_ALL: Final[tuple[Accountant, ...]] = (
    *(AUTO, ClosedForm(), Contour(), PRV(), Selection(), *_BOUNDS),
    *(Moments(), Advanced(), Basic(), BerryEsseen(), GaussianLimit(), Edgeworth()),
)
ACCOUNTANTS: Final[Mapping[str, Accountant]] = MappingProxyType({one.name: one for one in _ALL})
