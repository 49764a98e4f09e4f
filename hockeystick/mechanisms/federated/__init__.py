"""Plans of federated training: what each of several parties releases of its own data."""

from hockeystick._modules import import_modules
from hockeystick.mechanisms.base import registered_in

import_modules(__name__)
_REGISTERED = registered_in(__name__)

__all__ = list(_REGISTERED)

globals().update(_REGISTERED)
