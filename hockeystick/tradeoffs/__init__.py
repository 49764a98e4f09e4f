"""Trade-off functions as objects that one computes with."""

import lazy_loader

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
# The other rooms' own, which are no public names.
_INTERNAL = {"Ends", "GroupTradeOff", "PerfectPrivacy", "ProfileTradeOff", "ProfileValues"}
__all__ = [one for one in _names if one not in _INTERNAL and not one.endswith("Profile")]
