"""Every accountant by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hockeystick.accountants.auto import Auto
from hockeystick.accountants.base import Accountant
from hockeystick.accountants.closed_form import ClosedForm
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.gdp import GaussianLimit
from hockeystick.accountants.rdp import RDP

ACCOUNTANTS: Final[Mapping[str, Accountant]] = MappingProxyType(
    {one.name: one for one in (Auto(), ClosedForm(), Contour(), RDP(), GaussianLimit())}
)
