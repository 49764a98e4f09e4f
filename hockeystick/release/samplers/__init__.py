"""Exact noise: each draw has the named distribution, given ideal bits, not a float's idea of it.

All take ``bits``, a source of random 64-bit words: the operating system's, in whose place tests
replay others. Most return ``size`` independent draws, an array of 64-bit integers, empty for 0.
``ParameterError`` names an argument that is outside its domain, and ``OSError`` says that the
operating system has no random bits to give.

>>> from hockeystick.release import samplers
>>> samplers.rounded_gaussian(2.0**22, 3).shape
(3,)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
