"""Interrupts that arrive while compiled code runs."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def interruptible(function: Callable[P, R]) -> Callable[P, R]:
    """Return a compiled function that raises what a signal handler raised: KeyboardInterrupt, say.

    Where several arrays are handed back to Python, Python handles the signals that arrived
    meanwhile before the last array is there. It then reports a ``SystemError``, "returned a result
    with an exception set", caused by what was really raised.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except SystemError as error:
            raised: BaseException = error
            while isinstance(raised, SystemError) and raised.__cause__ is not None:
                raised = raised.__cause__
            raise raised from None

    return call
