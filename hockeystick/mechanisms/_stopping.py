"""What stopping early costs, as every plan of a fixed number of steps or rounds says it."""

from __future__ import annotations

from typing import Final

STOPPED_EARLIER: Final = (
    "a run that stops earlier because of what it saw costs as much as the whole plan."
)
