"""Arithmetic that knows its error: a float has two readings, its binary and its printed value."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
