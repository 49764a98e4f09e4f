"""The composition that an accountant reads, or the error that names an unsupported part."""

from __future__ import annotations

from hockeystick.errors import UnsupportedError
from hockeystick.mechanisms import Mechanism
from hockeystick.privacy_loss import Composition, NoAnalysisError, compose


def composition_of(mechanism: Mechanism, accountant: str) -> Composition:
    """Return the losses of all runs of a mechanism, for an accountant of that name.

    Raises:
        UnsupportedError: Naming the part of the plan for which no loss is known.
    """
    try:
        return compose(mechanism)
    except NoAnalysisError as error:
        raise UnsupportedError(accountant, error.part, str(error)) from None
