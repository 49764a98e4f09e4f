"""A private training loop whose noise is correlated from step to step."""

from hockeystick.adapters.torch._correlated_noise._loop import Correlated, make_correlated

__all__ = ["Correlated", "make_correlated"]
