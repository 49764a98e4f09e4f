"""Accountants: the one walk over a plan that adds up its losses, and the ways of reading the sum."""

from hockeystick.accountants.ask import Answer, Row, compare, delta, epsilon
from hockeystick.accountants.registry import ACCOUNTANTS

__all__ = ["ACCOUNTANTS", "Answer", "Row", "compare", "delta", "epsilon"]
