"""Opacus with proven accounts: an engine, and an accountant that is registered there."""

from hockeystick.adapters import missing

try:
    from hockeystick.adapters.opacus._accountant import (
        HockeystickAccountant,
        drawn_rate,
        get_noise_multiplier,
    )
    from hockeystick.adapters.opacus._engine import PrivacyEngine
except ModuleNotFoundError as error:
    raise missing(error, "opacus", "opacus") from error

__all__ = ["HockeystickAccountant", "PrivacyEngine", "drawn_rate", "get_noise_multiplier"]
