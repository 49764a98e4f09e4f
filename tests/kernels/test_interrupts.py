"""Interrupts in compiled code: what a handler raises is raised, and nothing else."""

import importlib
import pkgutil
import signal
from types import FrameType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from hockeystick import kernels
from hockeystick.kernels import compiled, series
from hockeystick.kernels.compiled import interruptible

ROOMS = [
    importlib.import_module(f"hockeystick.kernels.{room.name}")
    for room in pkgutil.iter_modules(kernels.__path__)
]

compiled.load()


def stop(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def arrays_of(function: Any) -> int:
    """Return how many arrays a function returns at the top level of a tuple."""
    returned = get_type_hints(function.py_func)["return"]
    parts = get_args(returned) if get_origin(returned) is tuple else ()
    return sum(get_origin(part) is np.ndarray for part in parts)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
def test_what_a_handler_raises_in_compiled_code_is_raised() -> None:
    rng = np.random.default_rng(1)
    loss, weight, error = rng.normal(size=(3, 2000))
    lines = (loss, weight - 10.0, np.abs(error) * 1e-16, np.abs(error) * 1e-16)
    series.mgf_line(*lines, 1.0, 0.1, 16)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        for _ in range(3):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(TimeoutError):
                series.mgf_line(*lines, 1.0, 0.1, 20_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_an_error_of_the_system_itself_is_left_alone() -> None:
    def broken() -> None:
        raise SystemError("of its own")

    with pytest.raises(SystemError, match="of its own"):
        interruptible(broken)()


# These are for other compiled functions, to which a Python function would be closed.
FOR_OTHER_KERNELS = {
    "sampled_gaussian": "rough_nodes",
    "series": "log_line logs_at",
    "sampled_gaussian_contour": "quadratures at_orders minorants composed_line",
}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__.rpartition(".")[2])
def test_what_returns_several_arrays_is_interruptible(room: Any) -> None:
    values = vars(room).values()
    wrapped = [getattr(value, "__wrapped__", None) for value in values]
    bare = [
        value.py_func.__name__
        for value in values
        if isinstance(value, Dispatcher)
        if value.__module__ == room.__name__ and arrays_of(value) > 1 and value not in wrapped
    ]
    assert bare == FOR_OTHER_KERNELS.get(room.__name__.rpartition(".")[2], "").split()
