"""What can be converted to, by name: one entry for each notion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, final

from hockeystick.conversions import _given
from hockeystick.conversions._given import Given
from hockeystick.conversions.to_approx import to_approx
from hockeystick.conversions.to_fdp import to_fdp
from hockeystick.conversions.to_gdp import to_gdp
from hockeystick.conversions.to_pure import to_pure
from hockeystick.conversions.to_renyi import to_renyi
from hockeystick.conversions.to_tcdp import to_tcdp
from hockeystick.conversions.to_zcdp import to_zcdp
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.tradeoffs import GaussianTradeOff


@final
@dataclass(frozen=True, slots=True)
class Target:
    """A notion to convert to.

    ``route`` is the conversion, dispatched on the type of the source; ``read`` checks what is given
    besides it; ``least`` is the guarantee of what releases nothing.
    """

    notion: type[Notion]
    route: Any
    read: Callable[[str, Mapping[str, object]], Given]
    least: Callable[[Given], Notion]


_ALL: Final = (
    Target(PureDP, to_pure, _given.nothing, lambda given: PureDP(0)),
    Target(
        ApproxDP,
        to_approx,
        _given.epsilon_or_delta,
        lambda given: ApproxDP(given.epsilon or 0, given.delta or 0),
    ),
    Target(GDP, to_gdp, _given.nothing, lambda given: GDP(0)),
    Target(ZCDP, to_zcdp, _given.nothing, lambda given: ZCDP(0)),
    Target(TCDP, to_tcdp, _given.largest_order, lambda given: TCDP(0, given.omega)),
    Target(
        RenyiDP,
        to_renyi,
        _given.some_orders,
        lambda given: RenyiDP(dict.fromkeys(given.orders, 0.0)),
    ),
    Target(FDP, to_fdp, _given.nothing, lambda given: FDP(GaussianTradeOff(0))),
)

TARGETS: Final[Mapping[str, Target]] = MappingProxyType(
    {target.notion.__name__: target for target in _ALL}
)
