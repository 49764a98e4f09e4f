"""A page to play with: sliders for a plan's numbers, and what is proven of it while they move.

``State`` is what the page shows, ``moved`` another one, ``answers`` what is proven of it, and
``serve`` the page itself, on this machine alone.
"""

from __future__ import annotations

from hockeystick.explore.state import State, moved

__all__ = ["State", "moved"]
