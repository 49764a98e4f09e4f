"""Solving for one parameter, splitting and spending budgets, sweeping over plans."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
