"""Exact noise: each draw has the named distribution, given ideal bits, not a float's idea of it.

Most return ``size`` independent draws, an array of 64-bit integers; tails are included, and floats
taken as they are. ``bits`` and errors are those of the room.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
