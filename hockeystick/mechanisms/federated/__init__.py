"""Plans of federated training: what each of several parties releases of its own data."""

from importlib import import_module
from pkgutil import walk_packages

from hockeystick.mechanisms.base import registered_in

for _found in walk_packages(__path__, f"{__name__}."):
    import_module(_found.name)
_REGISTERED = registered_in(__name__)

__all__ = list(_REGISTERED)

globals().update(_REGISTERED)
