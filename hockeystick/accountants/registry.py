"""Every accountant by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hockeystick.accountants.advanced import Advanced
from hockeystick.accountants.auto import Auto
from hockeystick.accountants.base import Accountant
from hockeystick.accountants.basic import Basic
from hockeystick.accountants.berry_esseen import BerryEsseen
from hockeystick.accountants.closed_form import ClosedForm
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.edgeworth import Edgeworth
from hockeystick.accountants.gdp import GaussianLimit
from hockeystick.accountants.moments import Moments
from hockeystick.accountants.parts import Parts
from hockeystick.accountants.prv import PRV
from hockeystick.accountants.rdp import RDP
from hockeystick.accountants.zcdp import ZeroConcentrated

ACCOUNTANTS: Final[Mapping[str, Accountant]] = MappingProxyType(
    {
        one.name: one
        for one in (
            Auto(),
            ClosedForm(),
            Contour(),
            PRV(),
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
