"""The best of a random number of runs, by the privacy profile of one run."""

from hockeystick.accountants.selection.accountant import Selection

__all__ = ["Selection"]
