"""Every accountant by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hockeystick.accountants.auto import Auto
from hockeystick.accountants.base import Accountant
from hockeystick.accountants.closed_forms.closed_form import ClosedForm
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.limits.berry_esseen import BerryEsseen
from hockeystick.accountants.limits.edgeworth import Edgeworth
from hockeystick.accountants.limits.gdp import GaussianLimit
from hockeystick.accountants.parts import Parts
from hockeystick.accountants.prv import PRV
from hockeystick.accountants.selection import Selection
from hockeystick.accountants.theorems.advanced import Advanced
from hockeystick.accountants.theorems.basic import Basic
from hockeystick.accountants.theorems.moments import Moments
from hockeystick.accountants.theorems.rdp import RDP
from hockeystick.accountants.theorems.zcdp import ZeroConcentrated

ACCOUNTANTS: Final[Mapping[str, Accountant]] = MappingProxyType(
    {
        one.name: one
        for one in (
            Auto(),
            ClosedForm(),
            Contour(),
            PRV(),
            Selection(),
            Parts(),
            RDP(),
            ZeroConcentrated(),
            Moments(),
            Advanced(),
            Basic(),
            BerryEsseen(),
            GaussianLimit(),
            Edgeworth(),
        )
    }
)
