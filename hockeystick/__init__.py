"""Differential-privacy accounting whose answers are proven intervals.

``epsilon``, ``delta``, ``convert`` and ``tradeoff`` ask, ``calibrate`` solves, ``Ledger`` keeps
budgets, and ``release`` adds the noise. ``print(hockeystick.mechanisms.index())`` lists every
mechanism that a plan is made of, by what it is for.

>>> import hockeystick as hs
>>> plan = hs.DPSGD(examples=60_000, batch_size=256, epochs=60, noise_multiplier=1.1)
>>> float(hs.epsilon(plan, delta=1e-5)) < 2.39
True
"""

import lazy_loader

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)

# The rest of the rooms are there by name, and no import with a star takes them.
_ROOMS = "accountants adapters answers audit conversions io ledger privacy_loss results schedules"
__all__ = [name for name in _names if name not in ("__version__", *_ROOMS.split())]
